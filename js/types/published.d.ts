/** What mechanisms and domains have in common. */

/** An integer of a spec or a value: a Number below 2^53, a BigInt from there on. */
export type Int = number | bigint;

/** Where an integer from 2^53 on may stand in a spec: as digit text, or in a constructor as a BigInt. */
export type GivenInt = number | bigint | string;

/** What is published as a spec: its `fields`, with `kind`, say everything about it. */
export abstract class Published {
  static readonly kind: string;
  static readonly fields: readonly string[];
  readonly kind: string;
  /** SHA-256 of the canonical spec, in hexadecimal. */
  readonly digest: string;
  /** Rebuild from a wire spec; unknown, missing and non-canonical fields are refused by name. */
  static fromSpec<Made>(this: new (fields: any) => Made, spec: Record<string, unknown>): Made;
  /** The wire spec in canonical form. */
  spec(): Record<string, any>;
}
