/** Tacit on the device: a published spec and a private value in, a noisy report out. */

export { Device } from "./base.js";
export { asBudget } from "./numbers/budget.js";
export { canonical, digest } from "./numbers/canonical.js";
export { Respondent } from "./client/client.js";
export { Coins, ReplayCoins, ScriptedCoins, SystemCoins } from "./numbers/coins.js";
export { Collection } from "./documents/document.js";
export { Attribute, Bits, Booleans, Categories, Domain, Ordered, Strings } from "./domains/domain.js";
export { InvalidSpec, InvalidValue, TacitError } from "./errors.js";
export { bucket, hash32, textId } from "./numbers/hashing.js";
export { Items } from "./domains/items.js";
export { FAMILIES, KINDS, deviceOf, privatizeOne } from "./kinds.js";
export { AlreadyAnswered, Ledger } from "./client/ledger.js";
export { loadDevice } from "./load.js";
export { MemoCoins, Memory } from "./kinds/memo.js";
export { StepMemory } from "./kinds/steps.js";
export { OptionalDomain } from "./domains/optional.js";
export { DOMAINS, Product, domainOf, project } from "./domains/product.js";
export { Buckets, Integers } from "./domains/reals.js";
export { CannotSeal, ProtocolViolation } from "./client/refusals.js";
export { hmac, sha256 } from "./numbers/sha256.js";
export { Text } from "./domains/text.js";

// The lists of kinds begin: tools/make_lists.py writes them.
export { DBitFlip } from "./kinds/bit_flip.js";
export { ABR, CBR, SS } from "./kinds/blocks.js";
export { AllOf, OneOf, Questions } from "./kinds/compose.js";
export { Grid, Rounded } from "./kinds/grid.js";
export { GRR } from "./kinds/grr.js";
export { HRR, HRRSigned, HRRSubspace, HRRT } from "./kinds/hadamard.js";
export { DiscreteLaplace, SHE } from "./kinds/laplace.js";
export { Tree } from "./kinds/levels.js";
export { BLH, FLH, OLH, RMP } from "./kinds/local_hash.js";
export { Coefficients, Views } from "./kinds/marginals.js";
export { OneBit } from "./kinds/mean.js";
export { LayeredMemo, Memoized } from "./kinds/memo.js";
export { BasicRAPPOR, RAPPOR } from "./kinds/rappor.js";
export { Padded, SetSize, Ticks } from "./kinds/sets.js";
export { CMS, HCMS } from "./kinds/sketch.js";
export { SquareWave } from "./kinds/square_wave.js";
export { TreeSteps } from "./kinds/steps.js";
export { OUE, RUE, SUE, THE } from "./kinds/unary.js";
// The lists of kinds end.
