/** Tacit on the device: a published spec and a private value in, a noisy report out. */

export { asBudget } from "./budget.js";
export { canonical, digest } from "./canonical.js";
export { Coins, ReplayCoins, ScriptedCoins, SystemCoins } from "./coins.js";
export { InvalidSpec, InvalidValue, TacitError } from "./errors.js";
export { bucket, hash32, textId } from "./hashing.js";
export { Device } from "./base.js";
export { KINDS, deviceOf, privatizeOne } from "./kinds.js";
export { hmac, sha256 } from "./sha256.js";
