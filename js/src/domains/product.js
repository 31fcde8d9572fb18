/** Several attributes together, and the list of all kinds of domains. The twin of `tacit.device.domains.product`. */

import { areDifferent, isObject } from "../numbers/checks.js";
import { Attribute, Bits, Booleans, Categories, Domain, Ordered, Strings, listed } from "./domain.js";
import { InvalidSpec, InvalidValue } from "../errors.js";
import { digitsOf, joined, tidy } from "../numbers/exact.js";
import { Items } from "./items.js";
import { kindsOf } from "../nested.js";
import { OptionalDomain } from "./optional.js";
import { Buckets, Integers } from "./reals.js";
import { Text } from "./text.js";

const MAX_ATTRIBUTES = 1024;

/** Every combination of answers to several attributes; the first attribute is the most significant digit. */
export class Product extends Domain {
  static kind = "product";
  static fields = ["attributes"];

  check() {
    /** @type {Attribute[]} */
    this.attributes = listed(/** @type {any} */ (this).attributes, this.kind, "attributes").map(attribute);
    if (this.attributes.length < 1 || this.attributes.length > MAX_ATTRIBUTES) {
      this.reject(`attributes must be 1 to ${MAX_ATTRIBUTES} domains`);
    }
    if (!areDifferent(this.names)) {
      this.reject("names of attributes must differ from each other");
    }
  }

  /** Names of the attributes, in order. @returns {string[]} */
  get names() {
    return this.attributes.map((one) => one.who);
  }

  /** Numbers of answers to the attributes, in order. */
  get sizes() {
    return this.attributes.map((one) => one.size);
  }

  get size() {
    return tidy(this.sizes.reduce((/** @type {bigint} */ all, size) => all * BigInt(size), 1n));
  }

  /** The index of every attribute's answer. @param {any} value @returns {(number | bigint)[]} */
  indices(value) {
    const answers = this.answers(value);
    return this.attributes.map((one, i) => one.encode(answers[i]));
  }

  /** @param {any} value @returns {any[]} */
  answers(value) {
    const count = this.names.length;
    if (Array.isArray(value) && value.length === count) return value;
    if (!isObject(value)) {
      throw new InvalidValue(`product: the value must be an object by attribute name or a list of ${count} answers`);
    }
    return this.names.map((name) => {
      if (Object.hasOwn(value, name)) return value[name];
      throw new InvalidValue(`${name}: the value is missing`);
    });
  }

  /** The mixed-radix index of a combination. @param {any} value */
  encode(value) {
    return this.join(this.indices(value));
  }

  /** @param {(number | bigint)[]} indices @returns {number | bigint} */
  join(indices) {
    return joined(indices, this.sizes);
  }

  /** The indices of the attributes. @param {number | bigint} index @returns {(number | bigint)[]} */
  split(index) {
    return digitsOf(index, this.sizes);
  }

  /** @param {number | bigint} index */
  label(index) {
    const digits = this.split(index);
    return this.attributes.map((one, i) => one.decode(digits[i]));
  }
}

/** @type {ReadonlyArray<typeof Domain>} */
export const DOMAINS = [Categories, Booleans, Integers, Buckets, Ordered, Bits, Text, Strings, Product, Items, OptionalDomain];

/** The domain of a wire spec. @param {any} spec @returns {Domain} */
export function domainOf(spec) {
  const domain = DOMAINS.find((one) => one.kind === spec?.kind);
  if (domain) return domain.fromSpec(spec);
  throw new InvalidSpec(`domain: kind must be one of ${kindsOf(DOMAINS)}`);
}

/** @param {any} item @returns {Attribute} */
function attribute(item) {
  const domain = isObject(item) && !(item instanceof Domain) ? domainOf(item) : item;
  if (domain instanceof Attribute && !(domain instanceof Items)) return domain;
  throw new InvalidSpec("product: an attribute must be a domain with a name; products and sets do not nest");
}

/**
 * The product of some of the attributes, in the order they are named.
 * @param {Product} product
 * @param {string[]} names
 */
export function project(product, names) {
  const attributes = listed(names, "product", "names").map((name) => {
    const found = product.attributes.find((one) => one.name === name);
    if (found) return found;
    throw new InvalidSpec(`product: there is no attribute '${name}', must be one of ${product.names.join(", ")}`);
  });
  return new Product({ attributes });
}
