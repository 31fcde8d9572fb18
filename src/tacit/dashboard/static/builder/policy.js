/** The builder's choice of how several questions are asked of one respondent, with what each way is good for. */

import { field, text } from "../page/inputs.js";
import { h } from "../page/dom.js";

/** @typedef {import("../page/inputs.js").Form} Form */

const POLICIES = [
  [
    "one_of",
    "One question each, drawn by the device",
    "Good for the share of every answer. How answers go together is not learned.",
  ],
  [
    "all_of",
    "All questions, epsilon is divided",
    "Good for two or three questions with few answers. Every answer gets more noise.",
  ],
  [
    "joint",
    "Together: the device draws which few answers go into one report",
    "Good for tables of several questions, and for which of them are connected. Epsilon is spent once.",
  ],
];

/** @param {Form} form @param {string[]} policy */
function choice(form, [policy, words, good]) {
  const choose = () => {
    form.model.policy = policy;
    form.redraw();
  };
  const box = h("input", { type: "radio", name: "policy", id: `policy-${policy}`, value: policy, onchange: choose });
  box.checked = form.model.policy === policy;
  return h("label", { class: "check" }, box, h("span", {}, words, h("small", {}, good)));
}

/** How many questions a table may have. @param {Form} form */
function tables(form) {
  const { model } = form;
  const most = Math.min(8, model.questions.length);
  const limits = { type: "number", min: 1, max: most, step: 1, read: Number };
  const input = text(form, model, "tableSize", "table-size", limits);
  const hint = "2 tells which pairs are connected. More needs many more respondents for the same precision.";
  return field("Tables of up to so many questions shall be precise", input, hint);
}

/** The choice, for several questions. @param {Form} form */
export const policies = (form) =>
  h(
    "fieldset",
    { class: "ticks one-column", id: "policy" },
    h("legend", {}, "How each respondent is asked"),
    ...POLICIES.map((policy) => choice(form, policy)),
    form.model.policy === "joint" && tables(form),
  );
