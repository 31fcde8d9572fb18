/** The survey page's own words by language; English where a document speaks a language that is not here. */

import de from "./words/de.js";
import en from "./words/en.js";
import es from "./words/es.js";
import fr from "./words/fr.js";

/** @type {Record<string, Record<string, string>>} */
const WORDS = { de, en, es, fr };

/** A BCP 47 tag from a document's tag: "pt_br" -> "pt-BR". @param {string} language */
export const tag = (language) => language.replace(/_(.*)$/, (_, region) => `-${region.toUpperCase()}`);

/** The name of a language in itself. @param {string} language */
export function ownName(language) {
  try {
    return new Intl.DisplayNames([tag(language)], { type: "language" }).of(tag(language)) ?? language;
  } catch {
    return language;
  }
}

/**
 * A function that says things in a language: say("range", {low: 1, high: 9}). Numbers are rounded to four digits, unless
 * they come with their number of digits after the point: {value: 98.3, digits: 1}; `bound` is the key of words around them.
 * @param {string} language
 * @returns {(key: string, values?: Record<string, any>) => string}
 */
export function speaker(language) {
  const words = WORDS[language] ?? WORDS[language.split("_")[0]] ?? en;
  const number = new Intl.NumberFormat(tag(language), { maximumSignificantDigits: 4 });
  const fixed = (/** @type {{value: number, digits: number, bound?: string}} */ { value, digits, bound }) => {
    const exact = { minimumFractionDigits: digits, maximumFractionDigits: digits };
    const text = new Intl.NumberFormat(tag(language), exact).format(value);
    return bound ? words[bound].replace("{value}", text) : text;
  };
  const show = (/** @type {any} */ value) =>
    typeof value === "number" ? number.format(value) : typeof value === "object" ? fixed(value) : String(value);
  return (key, values = {}) => {
    const text = words[key] ?? en[/** @type {keyof typeof en} */ (key)] ?? key;
    return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? show(values[name]) : whole));
  };
}
