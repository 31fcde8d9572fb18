/** A text area for SQL: coloured words, completion at the caret, and a mark where the collector sees a mistake.
 *
 * The coloured text lies under the area, in the same type, letter for letter; the area itself has only its caret.
 */

import { h } from "../page/dom.js";
import { completions, pieces } from "./sql_words.js";

/** A text area with completion; `run` is called on Ctrl and Enter. */
export class Editor {
  /** @type {any} */
  table = { name: "", columns: [] };
  /** @type {any[]} */
  items = [];
  from = 0;
  active = 0;
  mistake = 0;

  /** @param {string} id @param {() => void} run @param {() => void} changed */
  constructor(id, run, changed) {
    this.run = run;
    this.changed = changed;
    this.paper = h("div", { class: "sql-text sql-paper", "aria-hidden": "true" });
    const list = { class: "completions", role: "listbox", id: `${id}-list`, "aria-label": "Completions" };
    this.list = h("ul", { ...list, hidden: true });
    this.area = h("textarea", {
      ...{ id, class: "sql-text sql-area", rows: 6, spellcheck: "false", autocapitalize: "off", autocomplete: "off" },
      ...{ "aria-autocomplete": "list", "aria-controls": `${id}-list`, "aria-describedby": `${id}-help ${id}-problem` },
      oninput: () => this.typed(),
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event),
      onscroll: () => this.align(),
      onblur: () => this.close(),
      onclick: () => this.close(),
    });
    this.element = h("div", { class: "sql-box" }, this.paper, this.area, this.list);
  }

  get value() {
    return this.area.value;
  }

  /** Put in a whole text. @param {string} sql */
  write(sql) {
    this.area.value = sql;
    this.close();
    this.typed(false);
    this.area.focus();
  }

  /** Put a word where the caret is. @param {string} word */
  insert(word) {
    const { selectionStart: start, selectionEnd: end } = this.area;
    this.replace(start, end, /[\w']$/.test(this.value.slice(0, start)) ? ` ${word}` : word);
  }

  /** @param {number} start @param {number} end @param {string} text */
  replace(start, end, text) {
    this.area.focus();
    this.area.setSelectionRange(start, end);
    // Typed as if by hand, so that it can be undone.
    if (!document.execCommand("insertText", false, text)) this.area.setRangeText(text, start, end, "end");
    this.close();
    this.paint();
  }

  /** The text has changed. */
  typed(complete = true) {
    this.point(0);
    this.changed();
    if (complete) this.complete(false);
  }

  /** Mark the word at a character, counted from 1; 0 for none. @param {number} position */
  point(position) {
    this.mistake = position;
    this.paint();
  }

  /** Colour the text. */
  paint() {
    let at = 0;
    const spans = pieces(this.value, this.table).map(({ text, kind }) => {
      const wrong = this.mistake > at && this.mistake <= at + text.length && text.trim();
      at += text.length;
      const names = [kind && `sql-${kind}`, wrong && "sql-wrong"].filter(Boolean).join(" ");
      return names ? h("span", { class: names }, text) : text;
    });
    this.paper.replaceChildren(...spans, "\n");
    this.align();
  }

  /** Keep the coloured text below the letters. */
  align() {
    this.paper.scrollTop = this.area.scrollTop;
    this.paper.scrollLeft = this.area.scrollLeft;
  }

  /** Offer what may come next. @param {boolean} asked */
  complete(asked) {
    const { selectionStart: caret, selectionEnd: end } = this.area;
    const inside = /^\w/.test(this.value.slice(caret));
    if (caret !== end || inside) return this.close();
    const { from, items } = completions(this.value.slice(0, caret), this.table, asked);
    const typed = this.value.slice(from, caret);
    const done = items.length === 1 && items[0].text.trim() === typed && !asked;
    return items.length && !done ? this.open(from, items) : this.close();
  }

  /** @param {number} from @param {any[]} items */
  open(from, items) {
    [this.from, this.items] = [from, items];
    this.list.replaceChildren(
      ...items.map(({ name, about, private: hidden }, i) =>
        h(
          "li",
          {
            ...{ role: "option", id: `${this.list.id}-${i}`, "aria-selected": "false" },
            onpointerdown: (/** @type {Event} */ event) => event.preventDefault(),
            onclick: () => this.accept(i),
          },
          h("span", { class: hidden ? "sql-private" : "" }, name),
          h("small", {}, about),
        ),
      ),
    );
    this.list.hidden = false;
    this.place();
    this.choose(0);
  }

  /** Put the list below the caret. */
  place() {
    const mark = h("span", {}, "\u200b");
    const paper = this.paper.cloneNode(false);
    paper.append(this.value.slice(0, this.from), mark, this.value.slice(this.from));
    this.paper.after(paper);
    const left = Math.min(mark.offsetLeft, Math.max(0, this.area.clientWidth - this.list.offsetWidth));
    this.list.style.left = `${left}px`;
    this.list.style.top = `${mark.offsetTop + mark.offsetHeight - this.area.scrollTop + 4}px`;
    paper.remove();
  }

  /** @param {number} i */
  choose(i) {
    this.active = (i + this.items.length) % this.items.length;
    [...this.list.children].forEach((item, k) => item.setAttribute("aria-selected", String(k === this.active)));
    const chosen = this.list.children[this.active];
    chosen.scrollIntoView({ block: "nearest" });
    this.area.setAttribute("aria-activedescendant", chosen.id);
  }

  /** @param {number} i */
  accept(i) {
    this.replace(this.from, this.area.selectionEnd, this.items[i].text);
  }

  close() {
    this.list.hidden = true;
    this.items = [];
    this.area.removeAttribute("aria-activedescendant");
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const { key, ctrlKey, metaKey, shiftKey } = event;
    const does = this.does(key, ctrlKey || metaKey, shiftKey);
    if (!does) return;
    event.preventDefault();
    does();
  }

  /** @param {string} key @param {boolean} control @param {boolean} shift @returns {(() => void) | undefined} */
  does(key, control, shift) {
    if (control && key === "Enter") return () => (this.close(), this.run());
    if (control && key === " ") return () => this.complete(true);
    if (this.list.hidden || shift) return undefined;
    /** @type {Record<string, () => void>} */
    const keys = {
      ArrowDown: () => this.choose(this.active + 1),
      ArrowUp: () => this.choose(this.active - 1),
      Enter: () => this.accept(this.active),
      Tab: () => this.accept(this.active),
      Escape: () => this.close(),
    };
    return keys[key];
  }
}
