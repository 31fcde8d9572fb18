/** Domains: what a question may be answered with, and the index that stands for each answer. */

import { Published, type Int } from "./published.js";

/** What a question may be answered with, numbered from 0 to size - 1. */
export abstract class Domain extends Published {
  constructor(fields: Record<string, any>);
  /** Number of answers: a BigInt from 2^53 on. */
  readonly size: Int;
  /** The index of an answer, or InvalidValue. */
  encode(value: any): Int;
  /** The label of an index, or InvalidValue. */
  decode(place: Int): any;
  /** All labels in order of their index. */
  allLabels(): any[];
}

/** A domain with a name, which is what its errors begin with. */
export abstract class Attribute extends Domain {
  readonly name: string;
}

/** Labels in a meaningful order. */
export class Ordered extends Attribute {
  static readonly kind: "ordered" | "categories";
  constructor(fields: { name: string; labels: string[] });
  readonly labels: string[];
}

/** Labels without an order; `other` names a last bucket for every text that is not listed. */
export class Categories extends Ordered {
  static readonly kind: "categories";
  constructor(fields: { name: string; labels: string[]; other: string | null });
  readonly labels: string[];
  readonly other: string | null;
}

/** Yes or no. */
export class Booleans extends Attribute {
  static readonly kind: "booleans";
  constructor(fields: { name: string });
}

/** Bit strings of a fixed length, first bit most significant. */
export class Bits extends Attribute {
  static readonly kind: "bits";
  constructor(fields: { name: string; length: number });
  readonly length: number;
}

/** Text of at most `length` symbols of an alphabet; the first digits of its index are its beginning. */
export class Text extends Attribute {
  static readonly kind: "text";
  constructor(fields: { name: string; alphabet: string; length: number });
  readonly alphabet: string;
  readonly length: number;
  /** The end of a text, then the symbols in order. */
  readonly symbols: readonly string[];
}

/** Free text by a 64-bit keyed hash. */
export class Strings extends Attribute {
  static readonly kind: "strings";
  constructor(fields: { name: string; key: string; max_bytes: number });
  readonly key: string;
  readonly max_bytes: number;
}

/** The integers low, low + step, ..., high. */
export class Integers extends Attribute {
  static readonly kind: "integers";
  constructor(fields: { name: string; low: number; high: number; step: number });
  readonly low: number;
  readonly high: number;
  readonly step: number;
}

/** Real numbers in half-open buckets; open ends get a bucket of their own. */
export class Buckets extends Attribute {
  static readonly kind: "buckets";
  constructor(fields: { name: string; edges: string[]; open_below: boolean; open_above: boolean });
  readonly edges: string[];
  readonly open_below: boolean;
  readonly open_above: boolean;
}

/** Sets of items out of a list; `most` limits how many one answer may hold. */
export class Items extends Domain {
  static readonly kind: "items";
  constructor(fields: { name: string; labels: string[]; most: number | null });
  readonly name: string;
  readonly labels: string[];
  readonly most: number | null;
  /** The places of the items, increasing. */
  encode(value: string[]): any;
}

/** The answers of another domain, and a last one for whoever declines: null, or the label `declined`. */
export class OptionalDomain extends Domain {
  static readonly kind: "optional";
  constructor(fields: { domain: Domain; declined: string });
  readonly domain: any;
  readonly declined: string;
}

/** Every combination of answers to several attributes; the first is the most significant digit. */
export class Product extends Domain {
  static readonly kind: "product";
  constructor(fields: { attributes: Attribute[] });
  readonly attributes: Attribute[];
  readonly names: string[];
  /** The index of every attribute's answer. */
  indices(value: Record<string, any> | readonly any[]): Int[];
  /** The index of a combination from the indices of the attributes. */
  join(indices: readonly Int[]): Int;
  /** The indices of the attributes from the index of a combination. */
  split(place: Int): Int[];
}

/** Every kind of domain. */
export const DOMAINS: ReadonlyArray<typeof Domain>;

/** The domain of a wire spec, or InvalidSpec. */
export function domainOf(spec: unknown): Domain;

/** The product of some of the attributes, in the order they are named. */
export function project(product: Product, names: string[]): Product;
