/** Tacit on the device: a published spec and a private value in, a noisy report out; and the client that sends it. */

import { Published, type GivenInt, type Int } from "./types/published.js";

export type { GivenInt, Int };
export { Attribute, Bits, Booleans, Buckets, Categories, DOMAINS, Domain } from "./types/domains.js";
export { Integers, Items, OptionalDomain, Ordered, Product, Strings, Text, domainOf, project } from "./types/domains.js";
export { AlreadyAnswered, Collection, Ledger, Respondent } from "./types/client.js";
export type { Entry, Inclusion, Options, Party, Question, Receipt, Row, Rows } from "./types/client.js";
export type { Sealed, Session, ShuffleTerms, Spending, Store, Texts } from "./types/client.js";

/** A privacy budget as it is written in a spec. */
export type WireBudget = string | { of: string; share: string } | { of: string; sampled: number };

/** A mechanism as it is published: its kind and every field. Integers from 2^53 on are digit text. */
export interface Spec {
  kind: string;
  epsilon: WireBudget;
  [field: string]: unknown;
}

export interface Budget {
  /** The canonical wire form. */
  readonly wire: WireBudget;
  /** The declared epsilon: numerator and denominator, not necessarily in lowest terms. */
  readonly declared: [bigint, bigint];
  /** floor(e^epsilon * 2^64): no realised likelihood ratio exceeds odds/2^64. */
  readonly odds: bigint;
}

/** A budget from its wire form, or InvalidSpec. */
export function asBudget(value: unknown): Budget;

/** The canonical JSON text of a value, or InvalidSpec naming the place and the rule. */
export function canonical(value: unknown): string;

/** SHA-256 of the canonical JSON in hexadecimal: the identity of a spec. */
export function digest(value: unknown): string;

/** A stream of uniform 64-bit words. */
export abstract class Coins {
  /** Whether a client may use these coins for a real report. */
  readonly secure: boolean;
  /** How many words were consumed. */
  readonly used: number;
  /** The lower half of the word taken last. */
  readonly low: number;
  /** The upper half of the word taken last. */
  readonly high: number;
  /** The halves (low, high, low, high ...) of at least one further word. */
  abstract draw(): ArrayLike<number>;
  /** Consume one word and leave its halves in `low` and `high`. */
  take(): void;
  /** Consume one word. */
  word(): bigint;
  /** An integer in [0, m) from one word: a Number where it is below 2^53, else a BigInt. */
  uniform<M extends number | bigint>(m: M): M extends number ? number : number | bigint;
  /** True with probability threshold/2^64, from one word. */
  below(threshold: bigint): boolean;
}

/** The operating system's entropy. Cannot be seeded. */
export class SystemCoins extends Coins {
  draw(): ArrayLike<number>;
}

/** Repeatable words for vectors and tests; never for a real report. */
export class ReplayCoins extends Coins {
  constructor(seed: Uint8Array);
  draw(): ArrayLike<number>;
}

/** Exactly the given words, then an error. For tests. */
export class ScriptedCoins extends Coins {
  constructor(words: Iterable<bigint>);
  draw(): ArrayLike<number>;
}

/** Base of all errors that are raised on purpose. */
export class TacitError extends Error {}

/** A mechanism, domain or budget that cannot exist. */
export class InvalidSpec extends TacitError {}

/** A private value outside its declared domain; the value itself is never part of the message. */
export class InvalidValue extends TacitError {}

/** What parties of a shuffle published is not as it must be: take no part. */
export class ProtocolViolation extends TacitError {}

/** Reports must be sealed here, and cannot be; they are never sent in the clear instead. */
export class CannotSeal extends TacitError {
  /** Insecure: the page was not served over https. Browser: it lacks an algorithm. Mode: this client does not know it. */
  readonly reason: "insecure" | "browser" | "mode";
}

/** The seeded 32-bit hash of a value below 2^64 (a Number must be below 2^53). */
export function hash32(seed: number, value: number | bigint): number;

/** The bucket of a value among `buckets` ranges of its hash. */
export function bucket(seed: number, value: number | bigint, buckets: number): number;

/** The 64-bit id of a free string under the public key of a collection. */
export function textId(key: string, text: string): bigint;

/** A mechanism as the device sees it: frozen, its fields are the spec. */
export abstract class Device extends Published {
  constructor(fields: { epsilon: WireBudget; [field: string]: any });
  readonly budget: Budget;
  readonly epsilon: WireBudget;
  /** floor(e^epsilon * 2^64). */
  readonly odds: bigint;
  spec(): Spec;
  /** How many values there are; 2^64 where values are no integers. */
  readonly valueCount: Int;
  /** How many answers the domain of its question has; 0 where the value is a list of answers. */
  readonly domainSize: Int;
  /** Whether the first report on a value is repeated, so that a second answer costs nothing new. */
  readonly repeats: boolean;
  /** Whether a report can be written as one 64-bit word, which is what shufflers pass on. */
  readonly fitsWord: boolean;
  /** Refuse a value outside the domain with InvalidValue, before a coin is spent on any part of it. */
  checkValue(value: any): void;
  /** The noisy report on one private value. */
  privatizeOne(value: any, coins: Coins): Uint8Array;
  /** A report as a batch states it: the member that was drawn, 0 where none is, and its payload. */
  unpack(report: Uint8Array): { member: number; payload: Uint8Array };
}

/** A device that answers with an index below its size: a Number, or a BigInt from 2^53 on. */
declare abstract class IndexDevice extends Device {
  readonly size: Int;
  privatizeOne(value: Int, coins: Coins): Uint8Array;
}

/** Generalised randomised response: the true value, or any other with equal probability. */
export class GRR extends IndexDevice {
  static readonly kind: "grr";
  constructor(fields: { epsilon: WireBudget; size: number });
  readonly size: number;
  /** Of 2^64 words of a coin, how many give each untrue value. */
  readonly low: bigint;
}

/** Symmetric unary encoding: both kinds of bits flip alike. */
export class SUE extends IndexDevice {
  static readonly kind: "sue";
  constructor(fields: { epsilon: WireBudget; size: number });
  readonly size: number;
  /** Of 2^64 words of a coin, how many set the bit of the true value, and of any other. */
  readonly thresholds: [bigint, bigint];
}

/** Optimised unary encoding: the whole budget protects the zeros. */
export class OUE extends IndexDevice {
  static readonly kind: "oue";
  constructor(fields: { epsilon: WireBudget; size: number });
  readonly size: number;
  /** Of 2^64 words of a coin, how many set the bit of the true value, and of any other. */
  readonly thresholds: [bigint, bigint];
}

/** Re-optimised unary encoding: the best split of the budget for this domain size. */
export class RUE extends IndexDevice {
  static readonly kind: "rue";
  constructor(fields: { epsilon: WireBudget; size: number });
  readonly size: number;
  /** Of 2^64 words of a coin, how many set the bit of the true value, and of any other. */
  readonly thresholds: [bigint, bigint];
}

/** Thresholding with histogram encoding: Laplace noise, then one bit above theta. */
export class THE extends IndexDevice {
  static readonly kind: "the";
  constructor(fields: { epsilon: WireBudget; size: number; theta: string });
  readonly size: number;
  readonly theta: string;
  /** Of 2^64 words of a coin, how many set the bit of the true value, and of any other. */
  readonly thresholds: [bigint, bigint];
}

/** Binary local hashing: two buckets. */
export class BLH extends IndexDevice {
  static readonly kind: "blh";
  constructor(fields: { epsilon: WireBudget; size: GivenInt });
  readonly size: Int;
}

/** Optimised local hashing: a fresh hash function and a noisy bucket. */
export class OLH extends IndexDevice {
  static readonly kind: "olh";
  constructor(fields: { epsilon: WireBudget; size: GivenInt; buckets: number; state: "counts" | "log" });
  readonly size: Int;
  readonly buckets: number;
  readonly state: "counts" | "log";
}

/** Fast local hashing: a hash function of a public pool. */
export class FLH extends IndexDevice {
  static readonly kind: "flh";
  constructor(fields: { epsilon: WireBudget; size: GivenInt; pool: number; key: number; buckets: number });
  readonly size: Int;
  readonly pool: number;
  readonly key: number;
  readonly buckets: number;
}

/** Random matrix projection: the noisy sign of one row of a public matrix. */
export class RMP extends IndexDevice {
  static readonly kind: "rmp";
  constructor(fields: { epsilon: WireBudget; size: GivenInt; pool: number; key: number });
  readonly size: Int;
  readonly pool: number;
  readonly key: number;
}

/** Hadamard randomised response: the noisy sign of one row. */
export class HRR extends IndexDevice {
  static readonly kind: "hrr";
  constructor(fields: { epsilon: WireBudget; size: number; skip_zero: boolean });
  readonly size: number;
  readonly skip_zero: boolean;
}

/** Hadamard response on several distinct rows. */
export class HRRT extends IndexDevice {
  static readonly kind: "hrr_t";
  constructor(fields: { epsilon: WireBudget; size: number; coefficients: number });
  readonly size: number;
  readonly coefficients: number;
}

/** Hadamard response on independent rows and all their combinations. */
export class HRRSubspace extends IndexDevice {
  static readonly kind: "hrr_subspace";
  constructor(fields: { epsilon: WireBudget; size: number; coefficients: number });
  readonly size: number;
  readonly coefficients: number;
}

/** Signed Hadamard response: the value is 2 * node + half, and the two halves of a node count +1 and -1. */
export class HRRSigned extends IndexDevice {
  static readonly kind: "hrr_signed";
  constructor(fields: { epsilon: WireBudget; size: number });
  readonly size: number;
}

/** Subset selection: a set that more likely holds the value than not. */
export class SS extends IndexDevice {
  static readonly kind: "ss";
  constructor(fields: { epsilon: WireBudget; size: number; subset: number });
  readonly size: number;
  readonly subset: number;
  /** Number of points, and of points in a block. */
  readonly m: number;
  readonly k: number;
  /** Of 2^64 words of a coin, how many put the value into the block. */
  readonly include: bigint;
}

/** Cyclic block response: a shift of one difference set. */
export class CBR extends IndexDevice {
  static readonly kind: "cbr";
  constructor(fields: { epsilon: WireBudget; size: number; family: "singer" | "paley"; order: number; dimension: number });
  readonly size: number;
  readonly family: "singer" | "paley";
  readonly order: number;
  readonly dimension: number;
  /** Number of points, and of points in a block. */
  readonly m: number;
  readonly k: number;
  /** Of 2^64 words of a coin, how many put the value into the block. */
  readonly include: bigint;
}

/** Affine block response: an affine image of an interval. */
export class ABR extends IndexDevice {
  static readonly kind: "abr";
  constructor(fields: { epsilon: WireBudget; size: number; modulus: number; block: number; state: "counts" | "log" });
  readonly size: number;
  readonly modulus: number;
  readonly block: number;
  readonly state: "counts" | "log";
  /** Number of points, and of points in a block. */
  readonly m: number;
  readonly k: number;
  /** Of 2^64 words of a coin, how many put the value into the block. */
  readonly include: bigint;
}

/** Basic RAPPOR: permanent bits of symmetric unary encoding, reported through an instantaneous layer. */
export class BasicRAPPOR extends IndexDevice {
  static readonly kind: "brappor";
  constructor(fields: { epsilon: WireBudget; size: number; zero: string; one: string });
  readonly size: number;
  readonly zero: string;
  readonly one: string;
  /** `permanent` are the coins that the device remembers for this value. */
  privatizeOne(value: Int, coins: Coins, permanent?: Coins): Uint8Array;
}

/** RAPPOR: bits of a Bloom filter under the hash functions of one cohort. */
export class RAPPOR extends Device {
  static readonly kind: "rappor";
  constructor(fields: { epsilon: WireBudget; zero: string; one: string; bits: number; cohorts: number; key: number; hashes: number });
  readonly zero: string;
  readonly one: string;
  readonly bits: number;
  readonly cohorts: number;
  readonly key: number;
  readonly hashes: number;
  /** The cohort of a device: drawn once and remembered. */
  drawCohort(coins: Coins): number;
  /** `permanent` are the coins that the device remembers for this value, `cohort` its own cohort. */
  privatizeOne(value: Int, coins: Coins, permanent?: Coins, cohort?: number): Uint8Array;
}

/** Private count mean sketch: noisy bits of one row. */
export class CMS extends IndexDevice {
  static readonly kind: "cms";
  constructor(fields: { epsilon: WireBudget; size: GivenInt; rows: number; width: number; key: number });
  readonly size: Int;
  readonly rows: number;
  readonly width: number;
  readonly key: number;
}

/** Private Hadamard count mean sketch: one noisy sign. */
export class HCMS extends IndexDevice {
  static readonly kind: "hcms";
  constructor(fields: { epsilon: WireBudget; size: GivenInt; rows: number; width: number; key: number; skip_zero: boolean });
  readonly size: Int;
  readonly rows: number;
  readonly width: number;
  readonly key: number;
  readonly skip_zero: boolean;
}

/** Summation with histogram encoding: discrete Laplace noise on a one-hot vector. */
export class SHE extends IndexDevice {
  static readonly kind: "she";
  constructor(fields: { epsilon: WireBudget; size: number; grid: number; bound: number });
  readonly size: number;
  readonly grid: number;
  readonly bound: number;
}

/** One bit about a number on the grid 0 .. top. */
export class OneBit extends Device {
  static readonly kind: "onebit";
  constructor(fields: { epsilon: WireBudget; top: number });
  readonly top: number;
  privatizeOne(value: Int, coins: Coins): Uint8Array;
}

/** A number on the grid 0 .. top plus discrete Laplace noise, clamped. */
export class DiscreteLaplace extends Device {
  static readonly kind: "dlap";
  constructor(fields: { epsilon: WireBudget; top: number; bound: number });
  readonly top: number;
  readonly bound: number;
  privatizeOne(value: Int, coins: Coins): Uint8Array;
}

/** A number reported within a window around it more likely than at any place outside. */
export class SquareWave extends IndexDevice {
  static readonly kind: "sw";
  constructor(fields: { epsilon: WireBudget; size: number; width: number });
  readonly size: number;
  readonly width: number;
  readonly outputs: number;
}

/** Noisy bits of a few buckets that were drawn without looking at the value. */
export class DBitFlip extends IndexDevice {
  static readonly kind: "dbitflip";
  constructor(fields: { epsilon: WireBudget; size: number; sampled: number });
  readonly size: number;
  readonly sampled: number;
}

/** A mechanism whose answer to the same value never changes. */
export class Memoized extends Device {
  static readonly kind: "memo";
  constructor(fields: { epsilon: WireBudget; inner: Device; most_values: number; step: number });
  readonly inner: Device;
  readonly most_values: number;
  readonly step: number;
  /** The first report of a new device, whose secret is drawn from the coins. */
  privatizeOne(value: Int, coins: Coins): Uint8Array;
  /** The report of a device with a memory: what this value always gets; beyond the cap, the last one. */
  report(value: Int, memory: Memory): Uint8Array;
}

/** A permanent noisy answer per value (grr), sign of a row (hrr) or rounded number (onebit), with fresh noise on top. */
export class LayeredMemo extends Device {
  static readonly kind: "layered";
  constructor(fields: { epsilon: WireBudget; first: WireBudget; inner: Device; most_values: number; step: number });
  readonly first: WireBudget;
  readonly inner: Device;
  readonly most_values: number;
  readonly step: number;
  /** The first report of a new device, whose secret is drawn from the coins, and then the fresh layer. */
  privatizeOne(value: Int, coins: Coins): Uint8Array;
  /** A fresh noisy copy of the permanent answer that the memory keeps. */
  report(value: Int, memory: Memory, coins: Coins): Uint8Array;
}

/** What a device of `tree_steps` keeps between reports: its secret, and a keyed hash of the states it answered from. */
export class StepMemory {
  constructor(secret: Uint8Array, campaign: string, kept?: { nodes?: number; tag?: string });
  readonly secret: Uint8Array;
  readonly campaign: string;
  nodes: number;
  tag: string;
}

/** Signs about the changes of a yes/no state, one level of a tree over windows. */
export class TreeSteps extends Device {
  static readonly kind: "tree_steps";
  constructor(fields: { epsilon: WireBudget; fanout: number; levels: number; count: number; changes: number; thresholds: number[]; weights: number[]; one_way: boolean });
  readonly fanout: number;
  readonly levels: number;
  readonly count: number;
  readonly changes: number;
  readonly thresholds: number[];
  readonly weights: number[];
  readonly one_way: boolean;
  /** The report of a new device on a state, or on several in a row. */
  privatizeOne(value: number | number[], coins: Coins): Uint8Array;
  /** The level that a device follows for life. */
  levelOf(memory: StepMemory): number;
  /** Whether a node of the level ends with the window, so that a device reports. */
  isDue(level: number, window: number): boolean;
  /** The report on the last of these nodes: the state at the end of every node of the level so far. */
  report(states: number[], memory: StepMemory, coins: Coins): Uint8Array;
}

/** Padding and sampling: one element of a set, filled up to `length` with distinct dummies, through an oracle. */
export class Padded extends Device {
  static readonly kind: "padded";
  constructor(fields: { epsilon: WireBudget; size: number; candidates: number[][]; inner: Device; length: number });
  readonly size: number;
  readonly candidates: number[][];
  readonly inner: Device;
  readonly length: number;
  /** Number of candidates; the items themselves where none are listed. */
  readonly choices: number;
  /** Which candidates a set contains, increasing. */
  contained(value: number[]): number[];
  /** The report on one sampled element of a set. */
  privatizeOne(value: number[], coins: Coins): Uint8Array;
}

/** How many candidates a set contains, `most` and more counting alike, through an oracle. */
export class SetSize extends Device {
  static readonly kind: "set_size";
  constructor(fields: { epsilon: WireBudget; size: number; candidates: number[][]; inner: Device; most: number });
  readonly size: number;
  readonly candidates: number[][];
  readonly inner: Device;
  readonly most: number;
  /** Number of candidates; the items themselves where none are listed. */
  readonly choices: number;
  /** Which candidates a set contains, increasing. */
  contained(value: number[]): number[];
  /** The report on the number of candidates in a set. */
  privatizeOne(value: number[], coins: Coins): Uint8Array;
}

/** The explicit family: question i is attribute i of the respondent's answers, with its own mechanism. */
export class Questions extends Published {
  static readonly kind: "questions";
  constructor(fields: { mechanisms: Device[]; weights: number[] });
  readonly mechanisms: readonly Device[];
  readonly weights: readonly number[];
  readonly length: number;
  mechanism(i: number): Device;
  view(i: number): (answers: readonly any[]) => any;
}

/** The levels of a tree over an ordered domain: member i asks for the node of height `heights[i]` above the value. */
export class Tree extends Published {
  static readonly kind: "tree";
  constructor(fields: { size: number; fanout: number; heights: number[]; mechanisms: Device[]; weights: number[] });
  readonly size: number;
  readonly fanout: number;
  readonly heights: readonly number[];
  readonly mechanisms: readonly Device[];
  readonly weights: readonly number[];
  readonly length: number;
  mechanism(i: number): Device;
  view(i: number): (leaf: Int) => number;
}

/** Things to tick: the value is a set, and member i asks whether item i is in it. */
export class Ticks extends Published {
  static readonly kind: "ticks";
  constructor(fields: { size: number; mechanisms: Device[] });
  readonly size: number;
  readonly mechanisms: readonly Device[];
  readonly weights: readonly number[];
  readonly length: number;
  mechanism(i: number): Device;
  view(i: number): (items: readonly number[]) => number;
}

/** Products of levels of up to eight attributes: member i asks for the nodes of heights `heights[i]` together. */
export class Grid extends Published {
  static readonly kind: "grid";
  constructor(fields: { sizes: number[]; fanouts: number[]; heights: number[][]; mechanisms: Device[]; weights: number[] });
  readonly size: number;
  readonly sizes: readonly number[];
  readonly fanouts: readonly number[];
  readonly heights: readonly (readonly number[])[];
  readonly mechanisms: readonly Device[];
  readonly weights: readonly number[];
  readonly length: number;
  mechanism(i: number): Device;
  view(i: number): (combination: Int) => number;
  /** What a device is given of the answers to all attributes: the index of their combination. */
  ofAnswers(answers: readonly number[]): number;
}

/** Views of several attributes: member i asks for the combination of answers to the attributes `views[i]`. */
export class Views extends Published {
  static readonly kind: "views";
  constructor(fields: { sizes: number[]; views: number[][]; mechanisms: Device[]; weights: number[] });
  readonly sizes: readonly number[];
  readonly views: readonly (readonly number[])[];
  readonly mechanisms: readonly Device[];
  readonly weights: readonly number[];
  readonly length: number;
  cells(i: number): number;
  mechanism(i: number): Device;
  view(i: number): (answers: readonly Int[]) => number;
  /** What a device is given of the answers to all attributes: the list of them. */
  ofAnswers(answers: readonly number[]): readonly number[];
}

/** Hadamard coefficients of one to k attributes: member i asks for one sign; `by_order[j - 1]` weighs those of j. */
export class Coefficients extends Published {
  static readonly kind: "coefficients";
  constructor(fields: { sizes: number[]; k: number; mechanisms: Device[]; by_order: number[] });
  readonly sizes: readonly number[];
  readonly k: number;
  readonly mechanisms: readonly Device[];
  readonly by_order: readonly number[];
  readonly weights: readonly number[];
  readonly length: number;
  member(i: number): [attribute: number, mask: number][];
  mechanism(i: number): Device;
  view(i: number): (answers: readonly Int[]) => number;
  /** What a device is given of the answers to all attributes: the list of them. */
  ofAnswers(answers: readonly number[]): readonly number[];
}

/** A key and a number on the grid 0 .. top: the number is rounded to an end by a coin, the pair answered inside. */
export class Rounded extends Device {
  static readonly kind: "rounded";
  constructor(fields: { epsilon: WireBudget; top: number; inner: Device });
  readonly top: number;
  readonly inner: Device;
  readonly size: number;
  /** The value is key * (top + 1) + number. */
  privatizeOne(value: Int, coins: Coins): Uint8Array;
}

/** One question of a family, drawn by public coins, at the full epsilon. */
export class OneOf extends Device {
  static readonly kind: "one_of";
  constructor(fields: { epsilon: WireBudget; family: Questions | Tree | Grid | Views | Coefficients; payload_bytes: number });
  readonly family: Questions | Tree | Grid | Views | Coefficients;
  readonly payload_bytes: number;
  /** The value is the list of answers to all questions, or the index of a leaf of a tree. */
  privatizeOne(value: readonly any[] | Int, coins: Coins): Uint8Array;
}

/** Every question is answered; the epsilons of the members add up to at most epsilon. */
export class AllOf extends Device {
  static readonly kind: "all_of";
  constructor(fields: { epsilon: WireBudget; members: Device[]; state: "joint" | "log" | "members" });
  readonly members: Device[];
  readonly state: "joint" | "log" | "members";
  /** The value is the list of answers to all questions. */
  privatizeOne(value: readonly any[], coins: Coins): Uint8Array;
}

/** Coins of one value: HMAC-SHA-256 under the secret of the device. */
export class MemoCoins extends Coins {
  constructor(key: Uint8Array, campaign: string, parameters: Uint8Array, valueKey: Uint8Array);
  draw(): ArrayLike<number>;
}

/** What a device keeps between reports: its secret, keyed hashes of answered values, the last report. */
export class Memory {
  constructor(secret: Uint8Array, campaign: string, kept?: { seen?: string[]; last?: Uint8Array });
  readonly secret: Uint8Array;
  readonly campaign: string;
  /** Keyed hashes of the values that were answered, in hexadecimal. */
  seen: string[];
  last: Uint8Array;
  /** The coins of one value. */
  coins(parameters: Uint8Array, valueKey: string): MemoCoins;
  /** Whether this value may be answered: seen before, or still below the cap and then noted. */
  admit(parameters: Uint8Array, valueKey: string, most: number): boolean;
}

/** Every kind a device can answer. */
export const KINDS: ReadonlyArray<typeof Device>;

/** Families of questions of which one is answered: parts of a spec, not kinds of their own. */
export const FAMILIES: ReadonlyArray<
  typeof Questions | typeof Tree | typeof Grid | typeof Views | typeof Coefficients
>;

/** The device half of a wire spec, or InvalidSpec. */
export function deviceOf(spec: unknown): Device;

/** The device half of a wire spec; the modules of the kinds in it are loaded first. For pages, which have the bundle. */
export function loadDevice(spec: unknown): Promise<Device>;

/** The noisy report of one respondent, by default from the operating system's entropy. */
export function privatizeOne(spec: unknown, value: any, coins?: Coins): Uint8Array;

/** The 32 bytes of SHA-256. */
export function sha256(message: Uint8Array): Uint8Array;

/** The 32 bytes of HMAC-SHA-256. */
export function hmac(key: Uint8Array, message: Uint8Array): Uint8Array;

export {};
