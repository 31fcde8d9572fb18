/** Tacit on the device: a published spec and a private value in, a noisy report out. */

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
  protected abstract draw(): ArrayLike<number>;
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
  protected draw(): ArrayLike<number>;
}

/** Repeatable words for vectors and tests; never for a real report. */
export class ReplayCoins extends Coins {
  constructor(seed: Uint8Array);
  protected draw(): ArrayLike<number>;
}

/** Exactly the given words, then an error. For tests. */
export class ScriptedCoins extends Coins {
  constructor(words: Iterable<bigint>);
  protected draw(): ArrayLike<number>;
}

/** Base of all errors that are raised on purpose. */
export class TacitError extends Error {}

/** A mechanism, domain or budget that cannot exist. */
export class InvalidSpec extends TacitError {}

/** A private value outside its declared domain; the value itself is never part of the message. */
export class InvalidValue extends TacitError {}

/** The seeded 32-bit hash of a value below 2^64 (a Number must be below 2^53). */
export function hash32(seed: number, value: number | bigint): number;

/** The bucket of a value among `buckets` ranges of its hash. */
export function bucket(seed: number, value: number | bigint, buckets: number): number;

/** The 64-bit id of a free string under the public key of a collection. */
export function textId(key: string, text: string): bigint;

/** A mechanism as the device sees it: frozen, its fields are the spec. */
export abstract class Device {
  static readonly kind: string;
  static readonly fields: readonly string[];
  /** Rebuild from a wire spec; unknown and missing fields are refused by name. */
  static fromSpec(spec: Spec): Device;
  readonly kind: string;
  readonly budget: Budget;
  readonly epsilon: WireBudget;
  readonly odds: bigint;
  /** The wire spec in canonical form. */
  spec(): Spec;
  /** SHA-256 of the canonical spec. */
  readonly digest: string;
  /** The noisy report on one private value. */
  privatizeOne(value: any, coins: Coins): Uint8Array;
}

/** Every kind a device can answer. */
export const KINDS: ReadonlyArray<typeof Device>;

/** The device half of a wire spec, or InvalidSpec. */
export function deviceOf(spec: unknown): Device;

/** The noisy report of one respondent, by default from the operating system's entropy. */
export function privatizeOne(spec: unknown, value: any, coins?: Coins): Uint8Array;

/** The 32 bytes of SHA-256. */
export function sha256(message: Uint8Array): Uint8Array;

/** The 32 bytes of HMAC-SHA-256. */
export function hmac(key: Uint8Array, message: Uint8Array): Uint8Array;
