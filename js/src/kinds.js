/** Every kind a device can answer, and the one entry point of a client: spec and value in, report bytes out. */

import { ABR, CBR, SS } from "./blocks.js";
import { SystemCoins } from "./coins.js";
import { InvalidSpec } from "./errors.js";
import { GRR } from "./grr.js";
import { HRR, HRRSubspace, HRRT } from "./hadamard.js";
import { BLH, FLH, OLH, RMP } from "./local_hash.js";
import { OUE, RUE, SUE, THE } from "./unary.js";

/** @type {ReadonlyArray<typeof import("./base.js").Device>} */
export const KINDS = [GRR, SUE, OUE, RUE, THE, BLH, OLH, FLH, RMP, HRR, HRRT, HRRSubspace, SS, CBR, ABR];

/**
 * The device half of a wire spec.
 * @param {any} spec
 * @returns {import("./base.js").Device}
 */
export function deviceOf(spec) {
  const kind = KINDS.find((one) => one.kind === spec?.kind);
  if (kind) return kind.fromSpec(spec);
  const known = KINDS.map((one) => one.kind).join(", ");
  throw new InvalidSpec(`spec: kind is '${String(spec?.kind).slice(0, 40)}', must be one of ${known}`);
}

/**
 * The noisy report of one respondent: everything that ever leaves the device.
 * @param {any} spec
 * @param {any} value
 * @param {import("./coins.js").Coins} [coins]
 * @returns {Uint8Array}
 */
export const privatizeOne = (spec, value, coins = new SystemCoins()) => deviceOf(spec).privatizeOne(value, coins);
