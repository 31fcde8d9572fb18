/** What the survey page says in English. */
export default {
  yes: "Yes",
  no: "No",
  choose: "Choose…",
  range: "A whole number, {low} to {high}.",
  rangeStep: "A whole number, {low} to {high}, in steps of {step}.",
  number: "A number {rule}.",
  atLeast: "of at least {low}",
  below: "below {high}",
  and: "and",
  from: "{low} to under {high}",
  under: "under {high}",
  orMore: "{low} or more",
  bits: "Tick what applies.",
  bit: "Item {i}",
  bitsText: "{length} digits, each 0 or 1.",
  text: "At most {bytes} characters.",
  find: "Search the list",
  set: "Tick everything that applies. Ticking nothing is an answer too.",
  setMost: "Tick everything that applies, at most {most}. Ticking nothing is an answer too.",
  setChosen: "{count} ticked.",
  setOver: "{count} ticked, at most {most} are possible.",
  setHidden: "{count} more are not shown; search to find them.",
  textLower: "At most {length} letters from a to z; capitals are written small.",
  textPrintable: "At most {length} characters: letters without accents, digits, spaces and common signs.",
  textBytes:
    "Short: room for {length} plain letters or digits; accents, other scripts and emoji take the room of two to four.",
  textOf: "At most {length} characters, each one of: {characters}",
  textStrange: "Not possible here: {characters}",
  textOver: "Too long by {count}.",
  textLeft: "Room for {count} more.",
  details: "More about this",
  back: "Back to the builder",
  optional: "Optional. Left empty, it counts as “{declined}”.",
  declining: "Declining is an answer too: it is reported with the same noise as any other, so that nobody can see who declined.",
  noText: "I would rather write nothing",
  ticks: "Of the {count} things on the list, your browser picks one at random and reports, with noise, whether you ticked that one.",
  saysTick: "Your browser picked “{item}” out of {count} things. The report says that you {ticked}. It says the truth with a probability of {own} %, and the opposite with {other} %.",
  tickedYes: "ticked it",
  tickedNo: "did not tick it",
  missing: "Please answer this question.",
  invalid: "This answer is not one of those that the question allows.",
  privacyTitle: "How your answer is protected",
  privacy:
    "Before anything is sent, your browser adds noise to your answer. Only the noisy report leaves this device, and you see it first.",
  privacyRows:
    "Before anything is sent, your browser adds noise to your answers. Only the noisy report and the public columns leave this device, and you see both first.",
  columnsTitle: "Public columns, sent as they are",
  columnsNote:
    "No noise is added to these: they are not protected. They are stored with your noisy report and stay linked to it. Leave empty what you do not want to give.",
  col_integer: "A whole number.",
  col_number: "A number.",
  col_text: "At most 256 characters.",
  col_boolean: "",
  col_date: "A date.",
  col_empty: "left empty",
  columnInvalid: "This does not fit the column “{name}”.",
  sentColumns: "Sent with it, without noise",
  reviewNoteRows:
    "This report and the public columns are everything that will be sent, besides the number of the collection and a random number that keeps it from being counted twice. Your private answers are not sent without noise, and this page has already forgotten them.",
  epsilon:
    "The strength of the noise is ε = {epsilon}. If somebody takes an answer of yours for a coin toss, 50 %, then your report can make them at most {sure} % sure of it.",
  one_of: "There are {count} questions. Your browser picks one of them at random and reports on that one only.",
  all_of: "There are {count} questions. The report covers all of them, and ε is divided between them.",
  joint_views:
    "There are {count} questions. Your browser draws by itself which few of your answers go together into the one noisy report; it says nothing about the others. ε is spent once, not once per question.",
  joint_coefficients:
    "There are {count} questions. Your browser draws by itself a few of them and makes a single sign, plus or minus, of your answers to these; that noisy sign is the whole report. ε is spent once, not once per question.",
  joint_grid:
    "There are {count} questions. Your browser draws by itself which of your answers go together into the one noisy report, and how coarsely it looks at them. ε is spent once, not once per question.",
  plan:
    "This question is asked in rounds, each time of other people. Whoever has answered in one round is not asked again.",
  cohort:
    "Results are shown only once at least {count} reports are in. No address, name or time is stored with a report.",
  cohortRows:
    "Results are shown only once at least {count} reports are in. Beside the public columns, no address, name or time is stored with a report.",
  more: "How this works, with exact numbers",
  show: "Show me what will be sent",
  once: "Noise is drawn once. After this step the answer cannot be changed on this device.",
  reviewTitle: "This is the noisy report that will be sent",
  reviewNote:
    "This is everything that will be sent, besides the number of the collection and a random number that keeps it from being counted twice. Your answer is not sent without noise, and this page has already forgotten it.",
  inWords: "In words",
  saysValue:
    "It says “{value}”. It would say your own answer with a probability of {own} %, and each other answer with {other} %.",
  saysMarks:
    "It marks {count} of {size} answers: {values}. Your own answer is marked with a probability of {own} %, each other answer with {other} %.",
  saysMarksNone:
    "It marks none of the {size} answers. Your own answer is marked with a probability of {own} %, each other answer with {other} %.",
  saysBit: "It is a single bit: {bit}. Every number can lead to either bit.",
  saysBlock:
    "It is code {code} of {codes}. It fits your own answer with a probability of {own} %, each other answer with {other} %.",
  saysCode: "It is a scrambled code of {bytes} bytes.",
  saysCodeMany: "It is a scrambled code of {bytes} bytes that fits many different answers.",
  saysCodeFew: "It is a scrambled code of {bytes} bytes that fits only a few answers.",
  saysCodeOne: "It is a scrambled code of {bytes} bytes that fits hardly more than one answer.",
  lessThan: "less than {value}",
  moreThan: "more than {value}",
  saysGroups:
    "It is a noisy answer about which of {groups} groups of neighbouring answers yours is in, such as {example}. How fine the groups are was picked at random; each counts as one answer here.",
  saysLeaves:
    "It is a noisy answer about which of the {groups} answers is yours, without grouping them. How fine the groups are was picked at random.",
  saysPadded:
    "One entry of your list, filled up with blanks to {length}, was picked at random; a list of more than {length} was not filled up. The entry that was picked counts as your answer here.",
  saysAmong: "This round asks about {choices} entries only; others on your list play no part.",
  saysSize:
    "It is a noisy answer about how many of the {choices} entries in question are on your list. That number counts as your answer here.",
  blank: "a blank",
  saysPrefix:
    "It is a noisy answer about the first {digits} of the {all} places of your text. How many was picked at random; this beginning counts as your answer here.",
  saysPrefixBits:
    "It is a noisy answer about the first {digits} of the {all} bits that your answer is written with. How many was picked at random; this beginning counts as your answer here.",
  saysGrid:
    "It is a noisy answer about which of {groups} combinations of answers yours is in, such as {example}. How fine they are was picked at random; each counts as one answer here.",
  quoted: "“{text}”",
  saysView:
    "Your browser drew by itself which answers to look at: those to {questions}. Each combination of them counts as one answer here; there are {groups}, such as {example}.",
  saysFine: "How finely it looks was drawn as well.",
  saysSign:
    "It is a single noisy sign: {sign}. Your browser drew {questions}, and a public rule makes plus or minus of the answers. The report says the right sign with a probability of {own} %, and the other one with {other} %.",
  plus: "plus",
  minus: "minus",
  picked: "The question picked at random is “{question}”.",
  odds:
    "Any answer can lead to this report, but not equally often. If somebody takes an answer of yours for a coin toss, 50 %, the report can make them at most {sure} % sure of it.",
  weak: "That is close to certainty: at this ε the noise protects an answer only weakly.",
  send: "Send this report",
  later: "Not now",
  laterNote:
    "Nothing has been sent. The noisy report is kept on this device, so that it is not drawn again; come back when you like.",
  sending: "Sending…",
  sentTitle: "Thank you, your noisy report has arrived",
  sentNote:
    "Keep the receipt if you like. It says no more about you than the noisy report, which is part of it.",
  receipt: "Receipt",
  collection: "Collection",
  sentReport: "Report",
  spent: "Privacy spent",
  waitTitle: "Your report is waiting for a connection",
  waitNote:
    "It will be sent as soon as there is one. You may close this page; opening it again sends the same report, never a new one.",
  retry: "Try now",
  refusedTitle: "The report was not taken in",
  refusedNote: "The collector said: {reason}. Nothing was counted.",
  answeredTitle: "You have answered this already",
  answeredNote: "A second answer would reveal more about you, so there is only one per device.",
  closedTitle: "This collection is closed",
  closedNote: "No more reports are taken in. Nothing can be sent from this page.",
  passedTitle: "The round is over",
  passedNote:
    "A noisy report was drawn on this device for an earlier round and was never sent. That round is closed, and noise is drawn only once, so there is nothing to do here.",
  preview: "Preview of a draft: try it out; nothing is stored and nothing is sent.",
  previewTitle: "That was the preview",
  previewDone: "In the published collection the report would have been sent now.",
  again: "Try again",
  offline: "You are offline. You can answer now; the report will be sent later.",
  invited: "This collection needs an invitation, and this link has none. A report from here will not be taken in.",
  ledgerTitle: "What this device has spent so far",
  ledgerEmpty: "Nothing yet.",
  ledgerNote: "Every collection you answer spends some privacy. The amounts add up.",
  account: "Account",
  accountRun: "This run",
  accountLife: "For life",
  accountNote: "Collections that ask again and again are charged to accounts:",
  accountOf: "{spent} of {cap}",
  accountRun_day: "in any {windows} days in a row",
  accountRun_week: "in any {windows} weeks in a row",
  accountRun_month: "in any {windows} months in a row",
  state: "State",
  total: "In total",
  state_sent: "sent",
  state_pending: "waiting",
  state_held: "not sent",
  state_refused: "refused",
  notDrawn:
    "No report could be made of this answer. Nothing was sent, and no privacy was spent. Please tell whoever asked you: “{reason}”",
  broken:
    "Something on this page does not work. A report that was not acknowledged is kept on this device and is never drawn again. Please tell whoever asked you: “{reason}”",
  failedTitle: "This page cannot be shown safely",
  failedNote:
    "The document of this collection could not be fetched or does not match its address. Please do not answer; try again later.",
  storage:
    "This browser does not let the page remember anything, so it cannot promise to draw noise only once. Allow storage for this site, or open the page in its own window.",
  ownWindow: "Open the survey in its own window",
  language: "Language",
  shuffleTitle: "What shuffling adds",
  shuffle_shares:
    "Your browser seals the noisy report and splits it into {count} parts, one for each shuffler. No shuffler can read it. Together they mix all reports, and only then can the collector open them: it learns what was reported, but not by whom.",
  shuffle_layers:
    "Your browser seals the noisy report in layers, one for each of {count} shufflers. Each of them takes off its own layer and mixes all reports before it passes them on; only then can the collector open them. It learns what was reported, but not by whom.",
  shuffle_relay:
    "Your browser seals the noisy report, and a relay passes it on to a shuffler, which cannot read it. The shuffler mixes all reports, and only then can the collector open them: it learns what was reported, but not by whom.",
  shuffleFakes: "The shufflers add {fakes} made-up reports, which are taken out of the results again.",
  roleCollector: "Collector",
  roleShuffler: "Shuffler {i}",
  roleShufflers: "Shufflers",
  roleRelay: "Relay",
  shuffleBehind:
    "The relay sees your network address, but nothing of the report. The shufflers do not see your address when the report is sent; they do if you ask them later whether it took part.",
  shuffleSeen: "The shufflers see your network address, as every server does, but not what you report.",
  shuffleTrustMost:
    "For this you have to trust that at least {honest} of the {count} shufflers do not work together with the collector.",
  shuffleTrustAny:
    "For this you have to trust that at least one of the {count} shufflers does not work together with the collector.",
  shuffleTrustOne:
    "For this you have to trust that the shuffler does not work together with the collector, nor with the relay.",
  shuffleTogether:
    "One operator runs several roles: {roles}. It could undo the shuffle. Therefore nothing is promised beyond what the noise keeps by itself.",
  shuffleTable: "What your report can reveal at most, and to whom",
  shuffleEpsilon: "ε = {epsilon}",
  shuffleWho: "To whom",
  shuffleMost: "At most",
  against_collector: "The collector alone",
  against_others: "The collector together with all other respondents",
  against_local: "The collector together with the shufflers",
  byClaim: "claimed by the operators",
  byNoise: "kept by the noise alone, whomever you trust",
  shuffleClaim:
    "The first two figures are a claim of the operators. All of them have signed it; your browser has checked the signatures, not the arithmetic. The figures hold if at least {minimum} honest people take part, and may fail with a probability of {delta}.",
  shuffleFlood:
    "Nobody needs an invitation here. Somebody who sends in crowds of made-up reports could be all the others around you; against that, only the second figure helps.",
  shuffleCounted: "This device counts the last figure as spent, whatever the others are.",
  reviewNoteShuffled:
    "The report leaves this device only after it was sealed, so that no shuffler can read it. Sent with it are the number of the session and a random number, the slot, by which you can check later that the report took part. Your answer is not sent without noise, and this page has already forgotten it.",
  sentTitleShuffled: "Thank you, the shufflers have your sealed report",
  sentNoteShuffled:
    "It is counted if at least {minimum} people take part before the session ends. The receipt names its slot; this page can check with it whether the report took part.",
  answeredNoteShuffled: "There is only one answer per device, since a second one would reveal more about you.",
  session: "Session",
  slot: "Slot",
  waitTitleShuffled: "Your sealed report is waiting",
  waitFor: "No answer yet from: {names}. The report is counted only if all of them have their part.",
  waitNoteShuffled:
    "The report is kept on this device. You may close this page; opening it again sends the same report, never a new one, and never unsealed.",
  part_waiting:
    "The session still takes reports. Whether yours takes part can be seen while they are shuffled, and hardly any longer.",
  part_shown:
    "A shuffler shows your report among {count} that take part. The signatures of all shufflers follow at the end.",
  part_included:
    "Your report took part: all shufflers have signed a list of {count} reports, and yours is on it.",
  part_missing:
    "The session is over, and your report is not in the list that all shufflers signed. It was not counted.",
  part_aborted:
    "The session was given up before anything reached the collector. Your report is kept on this device; opening this page sends the same one in the next session.",
  part_refused: "What was published about this session does not hold: “{reason}”",
  checkPart: "Check whether it took part",
  hinderedTitle: "You cannot answer here now",
  hindered_insecure:
    "This page was not opened over https. Browsers seal nothing on such pages, and your report must not be sent unsealed. Please open the page over https.",
  hindered_browser:
    "This browser cannot seal reports: it lacks X25519, Ed25519 or AES-GCM. Please use a newer one. Nothing is sent unsealed.",
  hindered_mode:
    "This page does not know the way in which this collection is shuffled, so that it cannot seal your report. Nothing is sent unsealed.",
  hindered_violation:
    "What the parties of the shuffle have published is not signed by all of them, or differs from the document of this collection. Please do not answer, and tell whoever asked you: “{reason}”",
  hindered_session:
    "No session takes reports now: the shufflers are not ready yet, or the last session is over. Please come back later.",
};
