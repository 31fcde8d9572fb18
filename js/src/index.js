/** Tacit on the device: a published spec and a private value in, a noisy report out. */

export { Device } from "./base.js";
export { asBudget } from "./budget.js";
export { canonical, digest } from "./canonical.js";
export { Respondent } from "./client.js";
export { Coins, ReplayCoins, ScriptedCoins, SystemCoins } from "./coins.js";
export { Collection } from "./document.js";
export { Attribute, Bits, Booleans, Categories, Domain, Ordered, Strings } from "./domain.js";
export { InvalidSpec, InvalidValue, TacitError } from "./errors.js";
export { bucket, hash32, textId } from "./hashing.js";
export { Items } from "./items.js";
export { FAMILIES, KINDS, deviceOf, privatizeOne } from "./kinds.js";
export { AlreadyAnswered, Ledger } from "./ledger.js";
export { loadDevice } from "./load.js";
export { MemoCoins, Memory } from "./memo.js";
export { StepMemory } from "./steps.js";
export { OptionalDomain } from "./optional.js";
export { DOMAINS, Product, domainOf, project } from "./product.js";
export { Buckets, Integers } from "./reals.js";
export { CannotSeal, ProtocolViolation } from "./refusals.js";
export { hmac, sha256 } from "./sha256.js";
export { Text } from "./text.js";

// The lists of kinds begin: tools/make_lists.py writes them.
export { DBitFlip } from "./bit_flip.js";
export { ABR, CBR, SS } from "./blocks.js";
export { AllOf, OneOf, Questions } from "./compose.js";
export { Grid, Rounded } from "./grid.js";
export { GRR } from "./grr.js";
export { HRR, HRRSigned, HRRSubspace, HRRT } from "./hadamard.js";
export { DiscreteLaplace, SHE } from "./laplace.js";
export { Tree } from "./levels.js";
export { BLH, FLH, OLH, RMP } from "./local_hash.js";
export { Coefficients, Views } from "./marginals.js";
export { OneBit } from "./mean.js";
export { LayeredMemo, Memoized } from "./memo.js";
export { BasicRAPPOR, RAPPOR } from "./rappor.js";
export { Padded, SetSize, Ticks } from "./sets.js";
export { CMS, HCMS } from "./sketch.js";
export { SquareWave } from "./square_wave.js";
export { TreeSteps } from "./steps.js";
export { OUE, RUE, SUE, THE } from "./unary.js";
// The lists of kinds end.
