/** A storage for programs outside of browsers, where there is no `localStorage`. */
export class FileStorage {
  /** The file is made when something is kept first; its owner alone may read it. */
  constructor(path: string);
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
}
