/**
 * A storage for programs outside of browsers: what `localStorage` keeps for a page, in one file that its owner alone reads.
 * For Node alone, so that it stands beside the sources for pages.
 */

import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { platform } from "node:process";

import { InvalidSpec } from "../src/errors.js";

/** Have a file or a folder written to the disk. @param {string} path @param {string} mode */
function synced(path, mode) {
  const file = openSync(path, mode);
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

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
    const [folder, part] = [dirname(this.path), `${this.path}.part`];
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    // A crash or a power cut on the way leaves what was kept before, never half of something new; and what was kept is on
    // the disk before anything is sent, or the same answer would be drawn again.
    writeFileSync(part, JSON.stringify({ ...this.read(), [key]: value }), { mode: 0o600 });
    synced(part, "r+");
    renameSync(part, this.path);
    // Windows opens no folders.
    if (platform !== "win32") synced(folder, "r");
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
