/** Every kind a device can answer, and the one entry point of a client: spec and value in, report bytes out. */

import { makeDevice } from "./base.js";
import { SystemCoins } from "./numbers/coins.js";
// The lists of kinds begin: tools/make_lists.py writes them.
import { DBitFlip } from "./kinds/bit_flip.js";
import { ABR, CBR, SS } from "./kinds/blocks.js";
import { AllOf, OneOf, Questions } from "./kinds/compose.js";
import { Grid, Rounded } from "./kinds/grid.js";
import { GRR } from "./kinds/grr.js";
import { HRR, HRRSigned, HRRSubspace, HRRT } from "./kinds/hadamard.js";
import { DiscreteLaplace, SHE } from "./kinds/laplace.js";
import { Tree } from "./kinds/levels.js";
import { BLH, FLH, OLH, RMP } from "./kinds/local_hash.js";
import { Coefficients, Views } from "./kinds/marginals.js";
import { OneBit } from "./kinds/mean.js";
import { LayeredMemo, Memoized } from "./kinds/memo.js";
import { BasicRAPPOR, RAPPOR } from "./kinds/rappor.js";
import { Padded, SetSize, Ticks } from "./kinds/sets.js";
import { CMS, HCMS } from "./kinds/sketch.js";
import { SquareWave } from "./kinds/square_wave.js";
import { TreeSteps } from "./kinds/steps.js";
import { OUE, RUE, SUE, THE } from "./kinds/unary.js";

/** @type {ReadonlyArray<typeof import("./base.js").Device>} */
export const KINDS = [
  GRR, SUE, OUE, RUE, THE, BLH, OLH, FLH, RMP, HRR, HRRT, HRRSubspace, HRRSigned, SS, CBR, ABR, BasicRAPPOR, RAPPOR,
  CMS, HCMS, SHE, OneBit, DiscreteLaplace, SquareWave, DBitFlip, Rounded, OneOf, AllOf, Memoized, LayeredMemo,
  TreeSteps, Padded, SetSize,
];

/** Families of questions of which one is answered: parts of a spec, not kinds of their own. */
export const FAMILIES = [Questions, Tree, Grid, Views, Coefficients, Ticks];
// The lists of kinds end.

/**
 * The device half of a wire spec.
 * @param {any} spec
 * @returns {import("./base.js").Device}
 */
export const deviceOf = (spec) => makeDevice(spec, [...KINDS, ...FAMILIES]);

/**
 * The noisy report of one respondent: everything that ever leaves the device.
 * @param {any} spec
 * @param {any} value
 * @param {import("./numbers/coins.js").Coins} [coins]
 * @returns {Uint8Array}
 */
export const privatizeOne = (spec, value, coins = new SystemCoins()) => deviceOf(spec).privatizeOne(value, coins);
