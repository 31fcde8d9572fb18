/**
 * A storage for programs outside of browsers: what `localStorage` keeps for a page, in one file that its owner alone reads.
 * For Node alone, so that it stands beside the sources for pages.
 */

import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

import { InvalidSpec } from "../src/errors.js";

/** The decision and the ledger of one application, in a file of JSON. */
export class FileStorage {
  /** @param {string} path the file; it and its folder are made when something is kept first */
  constructor(path) {
    if (typeof path !== "string" || path === "") throw new InvalidSpec("storage: needs the path of a file");
    this.path = path;
  }

  /** @param {string} key @returns {string | null} */
  getItem(key) {
    return this.read()[key] ?? null;
  }

  /** @param {string} key @param {string} value */
  setItem(key, value) {
    mkdirSync(dirname(this.path), { recursive: true, mode: 0o700 });
    // A crash on the way leaves what was kept before, never half of something new.
    writeFileSync(`${this.path}.part`, JSON.stringify({ ...this.read(), [key]: value }), { mode: 0o600 });
    renameSync(`${this.path}.part`, this.path);
  }

  /** @returns {Record<string, string>} */
  read() {
    try {
      return JSON.parse(readFileSync(this.path, "utf8"));
    } catch (error) {
      if (/** @type {NodeJS.ErrnoException} */ (error).code === "ENOENT") return {};
      // Beginning anew would draw answers again that were sent already, and spend their epsilon twice.
      throw new InvalidSpec(`storage: ${this.path} cannot be read; put it back as it was, or remove it to forget everything`);
    }
  }
}
