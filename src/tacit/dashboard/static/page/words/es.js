/** What the survey page says in Spanish. */
export default {
  yes: "Sí",
  no: "No",
  choose: "Elija…",
  range: "Un número entero, de {low} a {high}.",
  rangeStep: "Un número entero, de {low} a {high}, en pasos de {step}.",
  number: "Un número {rule}.",
  atLeast: "de al menos {low}",
  below: "menor que {high}",
  and: "y",
  from: "de {low} a menos de {high}",
  under: "menos de {high}",
  orMore: "{low} o más",
  bits: "Marque lo que corresponda.",
  bit: "Punto {i}",
  bitsText: "{length} cifras, cada una 0 o 1.",
  text: "Como máximo {bytes} caracteres.",
  find: "Buscar en la lista",
  set: "Marque todo lo que corresponda. No marcar nada también es una respuesta.",
  setMost: "Marque todo lo que corresponda, {most} como máximo. No marcar nada también es una respuesta.",
  setChosen: "Casillas marcadas: {count}.",
  setOver: "Casillas marcadas: {count}; {most} como máximo son posibles.",
  setHidden: "No se muestran: {count}; búsquelos.",
  textLower: "Como máximo {length} letras de la a a la z; las mayúsculas se escriben en minúscula.",
  textPrintable: "Como máximo {length} caracteres: letras sin acento, cifras, espacios y signos corrientes.",
  textBytes:
    "Corto: caben {length} letras sencillas o cifras; los acentos, otras escrituras y los emojis ocupan el sitio de dos a cuatro.",
  textOf: "Como máximo {length} caracteres, de entre estos: {characters}",
  textStrange: "No es posible aquí: {characters}",
  textOver: "Demasiado largo por {count}.",
  textLeft: "Sitio restante: {count}.",
  details: "Más información",
  back: "Volver al borrador",
  optional: "Opcional. Si queda vacío, cuenta como «{declined}».",
  declining: "No contestar también es una respuesta: se comunica con el mismo ruido que cualquier otra, de modo que nadie ve quién no ha contestado.",
  noText: "Prefiero no escribir nada",
  ticks: "De las {count} cosas de la lista, su navegador elige una al azar e informa, con ruido, de si la ha marcado.",
  saysTick: "Su navegador ha elegido «{item}» entre {count} cosas. El informe dice que usted {ticked}. Dice la verdad con una probabilidad de {own} %, y lo contrario con {other} %.",
  tickedYes: "la ha marcado",
  tickedNo: "no la ha marcado",
  missing: "Responda a esta pregunta, por favor.",
  invalid: "La pregunta no admite esta respuesta.",
  privacyTitle: "Cómo se protege su respuesta",
  privacy:
    "Antes de enviar nada, su navegador añade ruido a la respuesta. Solo el informe con ruido sale de este dispositivo, y usted lo ve antes.",
  privacyRows:
    "Antes de enviar nada, su navegador añade ruido a las respuestas. Solo el informe con ruido y las columnas públicas salen de este dispositivo, y usted ve ambos antes.",
  columnsTitle: "Columnas públicas, enviadas tal cual",
  columnsNote:
    "No se les añade ruido: no están protegidas. Se guardan con su informe con ruido y quedan unidas a él. Deje vacío lo que no quiera dar.",
  col_integer: "Un número entero.",
  col_number: "Un número.",
  col_text: "Como mucho 256 caracteres.",
  col_boolean: "",
  col_date: "Una fecha.",
  col_empty: "vacío",
  columnInvalid: "Esto no encaja en la columna «{name}».",
  sentColumns: "Se envía con él, sin ruido",
  reviewNoteRows:
    "Este informe y las columnas públicas son todo lo que se envía, además del número de la consulta y un número aleatorio que evita contarlo dos veces. Sus respuestas protegidas no se envían sin ruido, y esta página ya las ha olvidado.",
  epsilon:
    "La intensidad del ruido es ε = {epsilon}. Si alguien cree que una respuesta suya es como lanzar una moneda, 50 %, su informe le puede dar como mucho un {sure} % de seguridad.",
  one_of: "Hay {count} preguntas. Su navegador elige una al azar e informa solo de esa.",
  all_of: "Hay {count} preguntas. El informe las cubre todas y ε se reparte entre ellas.",
  joint_views:
    "Hay {count} preguntas. Su navegador sortea por sí mismo qué pocas respuestas entran juntas en el único informe con ruido; de las demás no dice nada. ε se gasta una sola vez, no una por pregunta.",
  joint_coefficients:
    "Hay {count} preguntas. Su navegador sortea por sí mismo algunas y hace de sus respuestas un solo signo, más o menos; ese signo con ruido es todo el informe. ε se gasta una sola vez, no una por pregunta.",
  joint_grid:
    "Hay {count} preguntas. Su navegador sortea por sí mismo qué respuestas entran juntas en el único informe con ruido y con qué finura las mira. ε se gasta una sola vez, no una por pregunta.",
  plan:
    "Esta pregunta se hace por rondas, cada vez a otras personas. Quien ha respondido en una ronda no vuelve a ser preguntado.",
  cohort:
    "Los resultados se muestran solo a partir de {count} informes. Con un informe no se guarda ni dirección, ni nombre, ni hora.",
  cohortRows:
    "Los resultados se muestran solo a partir de {count} informes. Aparte de las columnas públicas, con un informe no se guarda ni dirección, ni nombre, ni hora.",
  more: "Cómo funciona, con cifras exactas (en inglés)",
  show: "Mostrar lo que se enviará",
  once: "El ruido se sortea una sola vez. Después, la respuesta ya no se puede cambiar en este dispositivo.",
  reviewTitle: "Este es el informe con ruido que se enviará",
  reviewNote:
    "Es todo lo que se envía, además del número de la consulta y un número aleatorio que evita contarlo dos veces. Su respuesta no se envía sin ruido, y esta página ya la ha olvidado.",
  inWords: "En palabras",
  saysValue:
    "Dice «{value}». Diría su propia respuesta con una probabilidad de {own} %, y cada una de las otras con {other} %.",
  saysMarks:
    "Marca {count} de {size} respuestas: {values}. Su propia respuesta se marca con una probabilidad de {own} %, cada una de las otras con {other} %.",
  saysMarksNone:
    "No marca ninguna de las {size} respuestas. Su propia respuesta se marca con una probabilidad de {own} %, cada una de las otras con {other} %.",
  saysBit: "Es un solo bit: {bit}. Cualquier número puede dar los dos bits.",
  saysBlock:
    "Es el código {code} de {codes}. Encaja con su propia respuesta con una probabilidad de {own} %, con cada una de las otras con {other} %.",
  saysCode: "Es un código revuelto de {bytes} bytes.",
  saysCodeMany: "Es un código revuelto de {bytes} bytes que encaja con muchas respuestas.",
  saysCodeFew: "Es un código revuelto de {bytes} bytes que encaja solo con unas pocas respuestas.",
  saysCodeOne: "Es un código revuelto de {bytes} bytes que apenas encaja con más de una respuesta.",
  lessThan: "menos de {value}",
  moreThan: "más de {value}",
  saysGroups:
    "Es un dato con ruido sobre en cuál de {groups} grupos de respuestas vecinas está la suya, como {example}. La finura de los grupos se eligió al azar; cada grupo cuenta aquí como una respuesta.",
  saysLeaves:
    "Es un dato con ruido sobre cuál de las {groups} respuestas es la suya, sin agruparlas. La finura de los grupos se eligió al azar.",
  saysPadded:
    "Se sorteó un elemento de su lista, completada con blancos hasta {length}; una lista de más de {length} no se completó. El elemento sorteado cuenta aquí como su respuesta.",
  saysAmong: "Esta ronda solo trata de {choices} elementos; los demás de su lista no intervienen.",
  saysSize:
    "Es un dato con ruido sobre cuántos de los {choices} elementos en cuestión están en su lista. Ese número cuenta aquí como su respuesta.",
  blank: "un blanco",
  saysPrefix:
    "Es un dato con ruido sobre los primeros {digits} de los {all} lugares de su texto. Cuántos, se eligió al azar; ese comienzo cuenta aquí como su respuesta.",
  saysPrefixBits:
    "Es un dato con ruido sobre los primeros {digits} de los {all} bits con que se escribe su respuesta. Cuántos, se eligió al azar; ese comienzo cuenta aquí como su respuesta.",
  saysGrid:
    "Es un dato con ruido sobre en cuál de {groups} combinaciones de respuestas está la suya, como {example}. Su finura se eligió al azar; cada una cuenta aquí como una respuesta.",
  quoted: "«{text}»",
  saysView:
    "Su navegador sorteó por sí mismo qué respuestas mirar: las de {questions}. Cada combinación cuenta aquí como una respuesta; hay {groups}, como {example}.",
  saysFine: "También se sorteó con qué finura mira.",
  saysSign:
    "Es un solo signo con ruido: {sign}. Su navegador sorteó {questions}, y una regla pública hace de las respuestas más o menos. El informe dice el signo correcto con una probabilidad de {own} %, y el otro con {other} %.",
  plus: "más",
  minus: "menos",
  picked: "La pregunta elegida al azar es «{question}».",
  odds:
    "Cualquier respuesta puede llevar a este informe, pero no con la misma frecuencia. Si alguien cree que una respuesta suya es como lanzar una moneda, 50 %, el informe le puede dar como mucho un {sure} % de seguridad.",
  weak: "Eso es casi certeza: con este ε el ruido protege una respuesta solo débilmente.",
  send: "Enviar este informe",
  later: "Ahora no",
  laterNote:
    "No se ha enviado nada. El informe con ruido queda en este dispositivo para no sortearlo de nuevo; vuelva cuando quiera.",
  sending: "Enviando…",
  sentTitle: "Gracias, su informe con ruido ha llegado",
  sentNote: "Puede guardar el recibo. No dice más sobre usted que el informe con ruido que contiene.",
  receipt: "Recibo",
  collection: "Consulta",
  sentReport: "Informe",
  spent: "Privacidad gastada",
  waitTitle: "Su informe espera una conexión",
  waitNote:
    "Se enviará en cuanto haya una. Puede cerrar la página; al abrirla de nuevo se envía el mismo informe, nunca otro.",
  retry: "Intentar ahora",
  refusedTitle: "El informe no se ha admitido",
  refusedNote: "El servidor dice: {reason}. No se ha contado nada.",
  answeredTitle: "Ya ha respondido",
  answeredNote: "Una segunda respuesta revelaría más sobre usted; por eso solo hay una por dispositivo.",
  closedTitle: "Esta consulta está cerrada",
  closedNote: "Ya no se admiten informes. Desde esta página no se puede enviar nada.",
  passedTitle: "La ronda ha terminado",
  passedNote:
    "En este dispositivo se sorteó un informe con ruido para una ronda anterior y nunca se envió. Esa ronda está cerrada y el ruido se sortea una sola vez; aquí no hay nada más que hacer.",
  preview: "Vista previa de un borrador: no se guarda ni se envía nada.",
  previewTitle: "Fin de la vista previa",
  previewDone: "En la consulta publicada, el informe se habría enviado ahora.",
  again: "Probar otra vez",
  offline: "No hay conexión. Puede responder ahora; el informe se enviará después.",
  invited: "Esta consulta requiere una invitación, y este enlace no la tiene. No se admitirá un informe desde aquí.",
  ledgerTitle: "Lo que este dispositivo ha gastado hasta ahora",
  ledgerEmpty: "Nada todavía.",
  ledgerNote: "Cada consulta que responde gasta algo de privacidad. Las cantidades se suman.",
  account: "Cuenta",
  accountRun: "Este periodo",
  accountLife: "En total",
  accountNote: "Las consultas que se repiten se cargan a cuentas:",
  accountOf: "{spent} de {cap}",
  accountRun_day: "en {windows} días seguidos",
  accountRun_week: "en {windows} semanas seguidas",
  accountRun_month: "en {windows} meses seguidos",
  state: "Estado",
  total: "En total",
  state_sent: "enviado",
  state_pending: "en espera",
  state_held: "no enviado",
  state_refused: "rechazado",
  notDrawn:
    "No se pudo hacer un informe de esta respuesta. No se envió nada ni se gastó privacidad. Dígaselo a quien le preguntó: «{reason}»",
  broken:
    "Algo no funciona en esta página. Un informe sin confirmar se queda en este dispositivo y nunca se sortea de nuevo. Dígaselo a quien le preguntó: «{reason}»",
  failedTitle: "Esta página no se puede mostrar con seguridad",
  failedNote:
    "El documento de esta consulta no se pudo obtener o no coincide con su dirección. No responda; inténtelo más tarde.",
  storage:
    "Este navegador no deja que la página recuerde nada, así que no puede prometer que el ruido se sortee una sola vez. Permita el almacenamiento o abra la página en su propia ventana.",
  ownWindow: "Abrir la encuesta en su propia ventana",
  language: "Idioma",
  shuffleTitle: "Qué añade la mezcla",
  shuffle_shares:
    "Su navegador sella el informe con ruido y lo divide en {count} partes, una para cada mezclador. Ningún mezclador puede leerlo. Juntos mezclan todos los informes, y solo entonces el recolector puede abrirlos: sabe qué se ha informado, pero no quién.",
  shuffle_layers:
    "Su navegador sella el informe con ruido en capas, una para cada uno de los {count} mezcladores. Cada uno quita su capa y mezcla todos los informes antes de pasarlos; solo entonces el recolector puede abrirlos. Sabe qué se ha informado, pero no quién.",
  shuffle_relay:
    "Su navegador sella el informe con ruido, y un intermediario lo pasa a un mezclador, que no puede leerlo. El mezclador mezcla todos los informes, y solo entonces el recolector puede abrirlos: sabe qué se ha informado, pero no quién.",
  shuffleFakes:
    "Los mezcladores añaden {fakes} informes inventados, que después se descuentan de los resultados.",
  roleCollector: "Recolector",
  roleShuffler: "Mezclador {i}",
  roleShufflers: "Mezcladores",
  roleRelay: "Intermediario",
  shuffleBehind:
    "El intermediario ve su dirección de red, pero nada del informe. Los mezcladores no ven su dirección cuando se envía el informe; la ven si más tarde les pregunta si participó.",
  shuffleSeen: "Los mezcladores ven su dirección de red, como cualquier servidor, pero no lo que usted informa.",
  shuffleTrustMost:
    "Para ello debe confiar en que al menos {honest} de los {count} mezcladores no colaboren con el recolector.",
  shuffleTrustAny:
    "Para ello debe confiar en que al menos uno de los {count} mezcladores no colabore con el recolector.",
  shuffleTrustOne:
    "Para ello debe confiar en que el mezclador no colabore ni con el recolector ni con el intermediario.",
  shuffleTogether:
    "Un mismo operador tiene varias funciones: {roles}. Podría deshacer la mezcla. Por eso no se promete nada más allá de lo que el ruido guarda por sí solo.",
  shuffleTable: "Lo que su informe puede revelar como máximo, y a quién",
  shuffleEpsilon: "ε = {epsilon}",
  shuffleWho: "A quién",
  shuffleMost: "Como máximo",
  against_collector: "Al recolector solo",
  against_others: "Al recolector junto con todas las demás personas encuestadas",
  against_local: "Al recolector junto con los mezcladores",
  byClaim: "afirmado por los operadores",
  byNoise: "guardado por el ruido solo, confíe en quien confíe",
  shuffleClaim:
    "Las dos primeras cifras son una afirmación de los operadores. Todos la han firmado; su navegador ha comprobado las firmas, no el cálculo. Las cifras valen si participan al menos {minimum} personas honradas, y pueden fallar con una probabilidad de {delta}.",
  shuffleFlood:
    "Aquí nadie necesita invitación. Quien envíe multitud de informes inventados podría ser todos los demás a su alrededor; contra eso solo ayuda la segunda cifra.",
  shuffleCounted: "Este dispositivo cuenta la última cifra como gastada, sean cuales sean las otras.",
  reviewNoteShuffled:
    "El informe solo sale de este dispositivo después de sellado, de modo que ningún mezclador puede leerlo. Con él se envían el número de la sesión y un número aleatorio, el puesto, con el que podrá comprobar más tarde que el informe participó. Su respuesta no se envía sin ruido, y esta página ya la ha olvidado.",
  sentTitleShuffled: "Gracias, los mezcladores tienen su informe sellado",
  sentNoteShuffled:
    "Se cuenta si participan al menos {minimum} personas antes de que acabe la sesión. El recibo indica su puesto; con él esta página puede comprobar si el informe participó.",
  answeredNoteShuffled: "Solo hay una respuesta por dispositivo, porque una segunda revelaría más sobre usted.",
  session: "Sesión",
  slot: "Puesto",
  waitTitleShuffled: "Su informe sellado está esperando",
  waitFor: "Todavía sin respuesta de: {names}. El informe solo se cuenta si todos tienen su parte.",
  waitNoteShuffled:
    "El informe se guarda en este dispositivo. Puede cerrar la página; al abrirla de nuevo se envía el mismo informe, nunca otro y nunca sin sellar.",
  part_waiting:
    "La sesión aún recibe informes. Se puede ver si el suyo participa mientras se mezclan, y apenas más tiempo.",
  part_shown:
    "Un mezclador muestra su informe entre {count} que participan. Las firmas de todos seguirán al final.",
  part_included:
    "Su informe participó: todos los mezcladores han firmado una lista de {count} informes, y el suyo está en ella.",
  part_missing:
    "La sesión ha terminado, y su informe no está en la lista que todos los mezcladores han firmado. No se ha contado.",
  part_aborted:
    "La sesión se abandonó antes de que nada llegara al recolector. Su informe se guarda en este dispositivo; al abrir esta página se envía el mismo en la sesión siguiente.",
  part_refused: "Lo publicado sobre esta sesión no es válido: «{reason}»",
  checkPart: "Comprobar si participó",
  hinderedTitle: "Ahora no puede responder aquí",
  hindered_insecure:
    "Esta página no se abrió por https. Los navegadores no sellan nada en páginas así, y su informe no debe enviarse sin sellar. Abra la página por https.",
  hindered_browser:
    "Este navegador no puede sellar informes: le falta X25519, Ed25519 o AES-GCM. Use uno más reciente. Nada se envía sin sellar.",
  hindered_mode:
    "Esta página no conoce la forma en que se mezcla esta consulta, y por eso no puede sellar su informe. Nada se envía sin sellar.",
  hindered_violation:
    "Lo que han publicado los participantes de la mezcla no está firmado por todos, o difiere del documento de esta consulta. No responda, y avise a quien le preguntó: «{reason}»",
  hindered_session:
    "Ahora ninguna sesión recibe informes: los mezcladores aún no están listos, o la última sesión ha terminado. Vuelva más tarde.",
};
