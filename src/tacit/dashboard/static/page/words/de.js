/** What the survey page says in German. */
export default {
  yes: "Ja",
  no: "Nein",
  choose: "Bitte wählen…",
  range: "Eine ganze Zahl, {low} bis {high}.",
  rangeStep: "Eine ganze Zahl, {low} bis {high}, in Schritten von {step}.",
  number: "Eine Zahl {rule}.",
  atLeast: "ab {low}",
  below: "unter {high}",
  and: "und",
  from: "{low} bis unter {high}",
  under: "unter {high}",
  orMore: "{low} oder mehr",
  bits: "Kreuzen Sie an, was zutrifft.",
  bit: "Punkt {i}",
  bitsText: "{length} Ziffern, jeweils 0 oder 1.",
  text: "Höchstens {bytes} Zeichen.",
  find: "Liste durchsuchen",
  set: "Kreuzen Sie alles an, was zutrifft. Nichts anzukreuzen ist auch eine Antwort.",
  setMost: "Kreuzen Sie alles an, was zutrifft, höchstens {most}. Nichts anzukreuzen ist auch eine Antwort.",
  setChosen: "{count} angekreuzt.",
  setOver: "{count} angekreuzt, höchstens {most} sind möglich.",
  setHidden: "{count} weitere werden nicht gezeigt; suchen Sie danach.",
  textLower: "Höchstens {length} Buchstaben von a bis z; große werden klein geschrieben.",
  textPrintable:
    "Höchstens {length} Zeichen: Buchstaben ohne Akzente und Umlaute, Ziffern, Leerzeichen und übliche Zeichen.",
  textBytes:
    "Kurz: Platz für {length} einfache Buchstaben oder Ziffern; Umlaute, andere Schriften und Emojis brauchen den Platz von zwei bis vier.",
  textOf: "Höchstens {length} Zeichen, und nur diese: {characters}",
  textStrange: "Hier nicht möglich: {characters}",
  textOver: "Um {count} zu lang.",
  textLeft: "Noch Platz für {count}.",
  details: "Mehr dazu",
  back: "Zurück zum Entwurf",
  optional: "Freiwillig. Bleibt es leer, zählt es als „{declined}“.",
  declining: "Auch keine Angabe ist eine Antwort: Sie wird mit demselben Rauschen gemeldet wie jede andere, so dass niemand sieht, wer nichts angegeben hat.",
  noText: "Ich möchte nichts schreiben",
  ticks: "Von den {count} Dingen auf der Liste wählt Ihr Browser zufällig eines und meldet mit Rauschen, ob Sie dieses angekreuzt haben.",
  saysTick: "Ihr Browser hat „{item}“ aus {count} Dingen gewählt. Die Meldung sagt, dass Sie es {ticked} haben. Sie sagt die Wahrheit mit einer Wahrscheinlichkeit von {own} % und das Gegenteil mit {other} %.",
  tickedYes: "angekreuzt",
  tickedNo: "nicht angekreuzt",
  missing: "Bitte beantworten Sie diese Frage.",
  invalid: "Diese Antwort ist bei dieser Frage nicht möglich.",
  privacyTitle: "Wie Ihre Antwort geschützt wird",
  privacy:
    "Bevor etwas gesendet wird, verrauscht Ihr Browser die Antwort. Nur der verrauschte Bericht verlässt dieses Gerät, und Sie sehen ihn vorher.",
  privacyRows:
    "Bevor etwas gesendet wird, verrauscht Ihr Browser die Antworten. Nur der verrauschte Bericht und die öffentlichen Spalten verlassen dieses Gerät, und Sie sehen beides vorher.",
  columnsTitle: "Öffentliche Spalten, unverändert gesendet",
  columnsNote:
    "Diese Angaben werden nicht verrauscht: Sie sind nicht geschützt. Sie werden mit Ihrem verrauschten Bericht gespeichert und bleiben mit ihm verknüpft. Lassen Sie leer, was Sie nicht angeben möchten.",
  col_integer: "Eine ganze Zahl.",
  col_number: "Eine Zahl.",
  col_text: "Höchstens 256 Zeichen.",
  col_boolean: "",
  col_date: "Ein Datum.",
  col_empty: "leer gelassen",
  columnInvalid: "Das passt nicht in die Spalte „{name}“.",
  sentColumns: "Wird unverrauscht mitgesendet",
  reviewNoteRows:
    "Dieser Bericht und die öffentlichen Spalten sind alles, was gesendet wird, neben der Nummer der Sammlung und einer Zufallszahl gegen doppeltes Zählen. Ihre geschützten Antworten werden nicht ohne Rauschen gesendet, und diese Seite hat sie schon vergessen.",
  epsilon:
    "Die Stärke des Rauschens ist ε = {epsilon}. Wer eine Antwort von Ihnen für einen Münzwurf hält, 50 %, kann sich nach Ihrem Bericht höchstens zu {sure} % sicher sein.",
  one_of: "Es gibt {count} Fragen. Ihr Browser wählt zufällig eine davon und berichtet nur über diese.",
  all_of: "Es gibt {count} Fragen. Der Bericht umfasst alle, und ε wird auf sie aufgeteilt.",
  joint_views:
    "Es gibt {count} Fragen. Ihr Browser zieht selbst, welche wenigen Ihrer Antworten zusammen in den einen verrauschten Bericht eingehen; über die anderen sagt er nichts. ε wird einmal verbraucht, nicht für jede Frage.",
  joint_coefficients:
    "Es gibt {count} Fragen. Ihr Browser zieht selbst einige davon und macht aus Ihren Antworten darauf ein einziges Vorzeichen, plus oder minus; dieses verrauschte Vorzeichen ist der ganze Bericht. ε wird einmal verbraucht, nicht für jede Frage.",
  joint_grid:
    "Es gibt {count} Fragen. Ihr Browser zieht selbst, welche Ihrer Antworten zusammen in den einen verrauschten Bericht eingehen und wie grob er sie betrachtet. ε wird einmal verbraucht, nicht für jede Frage.",
  plan:
    "Diese Frage wird in Runden gestellt, jedes Mal anderen Menschen. Wer in einer Runde geantwortet hat, wird nicht noch einmal gefragt.",
  cohort:
    "Ergebnisse werden erst ab {count} Berichten gezeigt. Weder Adresse noch Name noch Uhrzeit wird mit einem Bericht gespeichert.",
  cohortRows:
    "Ergebnisse werden erst ab {count} Berichten gezeigt. Außer den öffentlichen Spalten wird weder Adresse noch Name noch Uhrzeit mit einem Bericht gespeichert.",
  more: "Wie das geht, mit genauen Zahlen (auf Englisch)",
  show: "Zeigen, was gesendet wird",
  once: "Das Rauschen wird einmal gezogen. Danach lässt sich die Antwort auf diesem Gerät nicht mehr ändern.",
  reviewTitle: "Dieser verrauschte Bericht wird gesendet",
  reviewNote:
    "Das ist alles, was gesendet wird, neben der Nummer der Sammlung und einer Zufallszahl gegen doppeltes Zählen. Ihre Antwort wird nicht ohne Rauschen gesendet, und diese Seite hat sie schon vergessen.",
  inWords: "In Worten",
  saysValue:
    "Er lautet „{value}“. Er nennt Ihre eigene Antwort mit einer Wahrscheinlichkeit von {own} % und jede andere mit {other} %.",
  saysMarks:
    "Er markiert {count} von {size} Antworten: {values}. Ihre eigene Antwort wird mit einer Wahrscheinlichkeit von {own} % markiert, jede andere mit {other} %.",
  saysMarksNone:
    "Er markiert keine der {size} Antworten. Ihre eigene Antwort wird mit einer Wahrscheinlichkeit von {own} % markiert, jede andere mit {other} %.",
  saysBit: "Er ist ein einziges Bit: {bit}. Jede Zahl kann zu beiden Bits führen.",
  saysBlock:
    "Er ist Code {code} von {codes}. Er passt zu Ihrer eigenen Antwort mit einer Wahrscheinlichkeit von {own} %, zu jeder anderen mit {other} %.",
  saysCode: "Er ist ein verwürfelter Code von {bytes} Bytes.",
  saysCodeMany: "Er ist ein verwürfelter Code von {bytes} Bytes, der zu vielen Antworten passt.",
  saysCodeFew: "Er ist ein verwürfelter Code von {bytes} Bytes, der nur zu wenigen Antworten passt.",
  saysCodeOne: "Er ist ein verwürfelter Code von {bytes} Bytes, der zu kaum mehr als einer Antwort passt.",
  lessThan: "weniger als {value}",
  moreThan: "mehr als {value}",
  saysGroups:
    "Er ist eine verrauschte Angabe, in welcher von {groups} Gruppen benachbarter Antworten Ihre liegt, etwa {example}. Wie fein die Gruppen sind, wurde zufällig gewählt; jede zählt hier als eine Antwort.",
  saysLeaves:
    "Er ist eine verrauschte Angabe, welche der {groups} Antworten Ihre ist, ohne sie zu gruppieren. Wie fein die Gruppen sind, wurde zufällig gewählt.",
  saysPadded:
    "Ein Eintrag Ihrer Liste, mit leeren Einträgen auf {length} aufgefüllt, wurde zufällig gezogen; eine Liste von mehr als {length} wurde nicht aufgefüllt. Der gezogene Eintrag zählt hier als Ihre Antwort.",
  saysAmong: "In dieser Runde geht es nur um {choices} Einträge; andere auf Ihrer Liste spielen keine Rolle.",
  saysSize:
    "Er ist eine verrauschte Angabe, wie viele der {choices} fraglichen Einträge auf Ihrer Liste stehen. Diese Zahl zählt hier als Ihre Antwort.",
  blank: "ein leerer Eintrag",
  saysPrefix:
    "Er ist eine verrauschte Angabe über die ersten {digits} der {all} Stellen Ihres Textes. Wie viele, wurde zufällig gewählt; dieser Anfang zählt hier als Ihre Antwort.",
  saysPrefixBits:
    "Er ist eine verrauschte Angabe über die ersten {digits} der {all} Bits, mit denen Ihre Antwort geschrieben wird. Wie viele, wurde zufällig gewählt; dieser Anfang zählt hier als Ihre Antwort.",
  saysGrid:
    "Er ist eine verrauschte Angabe, in welcher von {groups} Kombinationen von Antworten Ihre liegt, etwa {example}. Wie fein sie sind, wurde zufällig gewählt; jede zählt hier als eine Antwort.",
  quoted: "„{text}“",
  saysView:
    "Ihr Browser hat selbst gezogen, welche Antworten er betrachtet: die auf {questions}. Jede Kombination zählt hier als eine Antwort; es gibt {groups}, etwa {example}.",
  saysFine: "Auch wie fein er hinschaut, wurde gezogen.",
  saysSign:
    "Er ist ein einziges verrauschtes Vorzeichen: {sign}. Ihr Browser hat {questions} gezogen, und eine öffentliche Regel macht aus den Antworten plus oder minus. Der Bericht nennt das richtige Vorzeichen mit einer Wahrscheinlichkeit von {own} % und das andere mit {other} %.",
  plus: "plus",
  minus: "minus",
  picked: "Zufällig gewählt wurde die Frage „{question}“.",
  odds:
    "Jede Antwort kann zu diesem Bericht führen, aber nicht gleich oft. Wer eine Antwort von Ihnen für einen Münzwurf hält, 50 %, kann sich nach dem Bericht höchstens zu {sure} % sicher sein.",
  weak: "Das ist fast Gewissheit: bei diesem ε schützt das Rauschen eine Antwort nur schwach.",
  send: "Diesen Bericht senden",
  later: "Jetzt nicht",
  laterNote:
    "Es wurde nichts gesendet. Der verrauschte Bericht bleibt auf diesem Gerät, damit er nicht neu gezogen wird; kommen Sie gern wieder.",
  sending: "Wird gesendet…",
  sentTitle: "Danke, Ihr verrauschter Bericht ist angekommen",
  sentNote:
    "Die Quittung können Sie aufheben. Sie sagt über Sie nicht mehr als der verrauschte Bericht, der darin steht.",
  receipt: "Quittung",
  collection: "Sammlung",
  sentReport: "Bericht",
  spent: "Verbraucht",
  waitTitle: "Ihr Bericht wartet auf eine Verbindung",
  waitNote:
    "Er wird gesendet, sobald es eine gibt. Sie können die Seite schließen; beim nächsten Öffnen wird derselbe Bericht gesendet, nie ein neuer.",
  retry: "Jetzt versuchen",
  refusedTitle: "Der Bericht wurde nicht angenommen",
  refusedNote: "Die Sammelstelle meldet: {reason}. Es wurde nichts gezählt.",
  answeredTitle: "Sie haben schon geantwortet",
  answeredNote: "Eine zweite Antwort würde mehr über Sie verraten; deshalb gibt es nur eine je Gerät.",
  closedTitle: "Diese Sammlung ist geschlossen",
  closedNote: "Es werden keine Berichte mehr angenommen. Von dieser Seite kann nichts gesendet werden.",
  passedTitle: "Die Runde ist vorbei",
  passedNote:
    "Auf diesem Gerät wurde für eine frühere Runde ein verrauschter Bericht gezogen und nie gesendet. Jene Runde ist geschlossen, und das Rauschen wird nur einmal gezogen; hier ist nichts mehr zu tun.",
  preview: "Vorschau eines Entwurfs: nichts wird gespeichert und nichts gesendet.",
  previewTitle: "Das war die Vorschau",
  previewDone: "In der veröffentlichten Sammlung wäre der Bericht jetzt gesendet worden.",
  again: "Noch einmal",
  offline: "Sie sind offline. Sie können trotzdem antworten; der Bericht wird später gesendet.",
  invited:
    "Diese Sammlung verlangt eine Einladung, und dieser Link enthält keine. Ein Bericht von hier wird nicht angenommen.",
  ledgerTitle: "Was dieses Gerät bisher verbraucht hat",
  ledgerEmpty: "Noch nichts.",
  ledgerNote: "Jede beantwortete Sammlung verbraucht etwas Privatsphäre. Die Beträge addieren sich.",
  account: "Konto",
  accountRun: "Dieser Zeitraum",
  accountLife: "Insgesamt",
  accountNote: "Sammlungen, die immer wieder fragen, werden Konten belastet:",
  accountOf: "{spent} von {cap}",
  accountRun_day: "in je {windows} Tagen hintereinander",
  accountRun_week: "in je {windows} Wochen hintereinander",
  accountRun_month: "in je {windows} Monaten hintereinander",
  state: "Stand",
  total: "Insgesamt",
  state_sent: "gesendet",
  state_pending: "wartet",
  state_held: "nicht gesendet",
  state_refused: "abgelehnt",
  notDrawn:
    "Aus dieser Antwort ließ sich kein Bericht machen. Nichts wurde gesendet und keine Privatsphäre verbraucht. Bitte sagen Sie es denen, die Sie gefragt haben: „{reason}“",
  broken:
    "Auf dieser Seite funktioniert etwas nicht. Ein Bericht, der nicht bestätigt wurde, bleibt auf diesem Gerät und wird nie neu gezogen. Bitte sagen Sie es denen, die Sie gefragt haben: „{reason}“",
  failedTitle: "Diese Seite kann nicht sicher gezeigt werden",
  failedNote:
    "Das Dokument dieser Sammlung war nicht abrufbar oder passt nicht zu seiner Adresse. Bitte antworten Sie nicht; versuchen Sie es später.",
  storage:
    "Dieser Browser lässt die Seite nichts speichern; sie kann daher nicht versprechen, das Rauschen nur einmal zu ziehen. Erlauben Sie Speicher für diese Seite oder öffnen Sie sie in einem eigenen Fenster.",
  ownWindow: "Umfrage in eigenem Fenster öffnen",
  language: "Sprache",
  shuffleTitle: "Was das Mischen hinzufügt",
  shuffle_shares:
    "Ihr Browser versiegelt den verrauschten Bericht und teilt ihn in {count} Teile auf, einen für jeden Mischer. Kein Mischer kann ihn lesen. Gemeinsam mischen sie alle Berichte, und erst dann kann die Sammelstelle sie öffnen: Sie erfährt, was berichtet wurde, aber nicht von wem.",
  shuffle_layers:
    "Ihr Browser versiegelt den verrauschten Bericht in Schichten, eine für jeden von {count} Mischern. Jeder nimmt seine Schicht ab und mischt alle Berichte, bevor er sie weitergibt; erst dann kann die Sammelstelle sie öffnen. Sie erfährt, was berichtet wurde, aber nicht von wem.",
  shuffle_relay:
    "Ihr Browser versiegelt den verrauschten Bericht, und ein Vermittler reicht ihn an einen Mischer weiter, der ihn nicht lesen kann. Der Mischer mischt alle Berichte, und erst dann kann die Sammelstelle sie öffnen: Sie erfährt, was berichtet wurde, aber nicht von wem.",
  shuffleFakes:
    "Die Mischer fügen {fakes} erfundene Berichte hinzu, die aus den Ergebnissen wieder herausgerechnet werden.",
  roleCollector: "Sammelstelle",
  roleShuffler: "Mischer {i}",
  roleShufflers: "Mischer",
  roleRelay: "Vermittler",
  shuffleBehind:
    "Der Vermittler sieht Ihre Netzadresse, aber nichts vom Bericht. Die Mischer sehen Ihre Adresse nicht, wenn der Bericht gesendet wird, wohl aber, wenn Sie sie später fragen, ob er teilgenommen hat.",
  shuffleSeen: "Die Mischer sehen Ihre Netzadresse, wie jeder Server, aber nicht, was Sie berichten.",
  shuffleTrustMost:
    "Dafür müssen Sie darauf vertrauen, dass mindestens {honest} der {count} Mischer nicht mit der Sammelstelle zusammenarbeiten.",
  shuffleTrustAny:
    "Dafür müssen Sie darauf vertrauen, dass mindestens einer der {count} Mischer nicht mit der Sammelstelle zusammenarbeitet.",
  shuffleTrustOne:
    "Dafür müssen Sie darauf vertrauen, dass der Mischer weder mit der Sammelstelle noch mit dem Vermittler zusammenarbeitet.",
  shuffleTogether:
    "Ein Betreiber hat mehrere Rollen: {roles}. Er könnte das Mischen rückgängig machen. Deshalb wird nichts versprochen, was über das Rauschen selbst hinausgeht.",
  shuffleTable: "Was Ihr Bericht höchstens verraten kann, und wem",
  shuffleEpsilon: "ε = {epsilon}",
  shuffleWho: "Wem",
  shuffleMost: "Höchstens",
  against_collector: "Der Sammelstelle allein",
  against_others: "Der Sammelstelle zusammen mit allen anderen Befragten",
  against_local: "Der Sammelstelle zusammen mit den Mischern",
  byClaim: "Angabe der Betreiber",
  byNoise: "durch das Rauschen allein, wem auch immer Sie vertrauen",
  shuffleClaim:
    "Die ersten beiden Zahlen sind eine Angabe der Betreiber. Alle haben sie unterschrieben; Ihr Browser hat die Unterschriften geprüft, nicht die Rechnung. Die Zahlen gelten, wenn mindestens {minimum} ehrliche Menschen teilnehmen, und können mit einer Wahrscheinlichkeit von {delta} verfehlt werden.",
  shuffleFlood:
    "Hier braucht niemand eine Einladung. Wer massenhaft erfundene Berichte einsendet, könnte alle anderen um Sie herum sein; dagegen hilft nur die zweite Zahl.",
  shuffleCounted: "Dieses Gerät rechnet die letzte Zahl als verbraucht, wie auch immer die anderen lauten.",
  reviewNoteShuffled:
    "Der Bericht verlässt dieses Gerät erst, nachdem er versiegelt wurde, sodass kein Mischer ihn lesen kann. Mitgesendet werden die Nummer der Sitzung und eine Zufallszahl, der Platz, mit dem Sie später prüfen können, ob der Bericht teilgenommen hat. Ihre Antwort wird nicht ohne Rauschen gesendet, und diese Seite hat sie schon vergessen.",
  sentTitleShuffled: "Danke, die Mischer haben Ihren versiegelten Bericht",
  sentNoteShuffled:
    "Er wird gezählt, wenn mindestens {minimum} Menschen teilnehmen, bevor die Sitzung endet. Die Quittung nennt seinen Platz; damit kann diese Seite prüfen, ob der Bericht teilgenommen hat.",
  answeredNoteShuffled: "Es gibt nur eine Antwort je Gerät, weil eine zweite mehr über Sie verraten würde.",
  session: "Sitzung",
  slot: "Platz",
  waitTitleShuffled: "Ihr versiegelter Bericht wartet",
  waitFor: "Noch keine Antwort von: {names}. Der Bericht zählt nur, wenn alle ihren Teil haben.",
  waitNoteShuffled:
    "Der Bericht ist auf diesem Gerät aufgehoben. Sie können die Seite schließen; beim nächsten Öffnen wird derselbe Bericht gesendet, nie ein neuer und nie unversiegelt.",
  part_waiting:
    "Die Sitzung nimmt noch Berichte an. Ob Ihrer teilnimmt, lässt sich sehen, während gemischt wird, und kaum länger.",
  part_shown:
    "Ein Mischer zeigt Ihren Bericht unter {count}, die teilnehmen. Die Unterschriften aller Mischer folgen am Ende.",
  part_included:
    "Ihr Bericht hat teilgenommen: Alle Mischer haben eine Liste von {count} Berichten unterschrieben, und Ihrer steht darauf.",
  part_missing:
    "Die Sitzung ist zu Ende, und Ihr Bericht ist nicht in der Liste, die alle Mischer unterschrieben haben. Er wurde nicht gezählt.",
  part_aborted:
    "Die Sitzung wurde aufgegeben, bevor etwas die Sammelstelle erreichte. Ihr Bericht ist auf diesem Gerät aufgehoben; beim Öffnen dieser Seite wird derselbe in der nächsten Sitzung gesendet.",
  part_refused: "Was über diese Sitzung veröffentlicht wurde, stimmt nicht: „{reason}“",
  checkPart: "Prüfen, ob er teilgenommen hat",
  hinderedTitle: "Hier können Sie gerade nicht antworten",
  hindered_insecure:
    "Diese Seite wurde nicht über https geöffnet. Browser versiegeln auf solchen Seiten nichts, und Ihr Bericht darf nicht unversiegelt gesendet werden. Bitte öffnen Sie die Seite über https.",
  hindered_browser:
    "Dieser Browser kann keine Berichte versiegeln: Ihm fehlt X25519, Ed25519 oder AES-GCM. Bitte nehmen Sie einen neueren. Unversiegelt wird nichts gesendet.",
  hindered_mode:
    "Diese Seite kennt die Art nicht, in der diese Sammlung gemischt wird, und kann Ihren Bericht deshalb nicht versiegeln. Unversiegelt wird nichts gesendet.",
  hindered_violation:
    "Was die Beteiligten der Mischung veröffentlicht haben, ist nicht von allen unterschrieben oder weicht vom Dokument dieser Sammlung ab. Bitte antworten Sie nicht, und sagen Sie denen Bescheid, die Sie gefragt haben: „{reason}“",
  hindered_session:
    "Gerade nimmt keine Sitzung Berichte an: Die Mischer sind noch nicht bereit, oder die letzte Sitzung ist zu Ende. Bitte kommen Sie später wieder.",
};
