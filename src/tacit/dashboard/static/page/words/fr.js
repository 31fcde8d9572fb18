/** What the survey page says in French. */
export default {
  yes: "Oui",
  no: "Non",
  choose: "Choisissez…",
  range: "Un nombre entier, de {low} à {high}.",
  rangeStep: "Un nombre entier, de {low} à {high}, par pas de {step}.",
  number: "Un nombre {rule}.",
  atLeast: "d’au moins {low}",
  below: "inférieur à {high}",
  and: "et",
  from: "de {low} à moins de {high}",
  under: "moins de {high}",
  orMore: "{low} ou plus",
  bits: "Cochez ce qui convient.",
  bit: "Point {i}",
  bitsText: "{length} chiffres, chacun 0 ou 1.",
  text: "{bytes} caractères au plus.",
  find: "Chercher dans la liste",
  set: "Cochez tout ce qui convient. Ne rien cocher est aussi une réponse.",
  setMost: "Cochez tout ce qui convient, {most} au plus. Ne rien cocher est aussi une réponse.",
  setChosen: "Cases cochées : {count}.",
  setOver: "Cases cochées : {count} ; {most} au plus sont possibles.",
  setHidden: "Non affichés : {count} ; cherchez pour les trouver.",
  textLower: "Au plus {length} lettres de a à z ; les majuscules deviennent minuscules.",
  textPrintable: "{length} caractères au plus : lettres sans accent, chiffres, espaces et signes courants.",
  textBytes:
    "Court : place pour {length} lettres simples ou chiffres ; les accents, les autres écritures et les emojis prennent la place de deux à quatre.",
  textOf: "{length} caractères au plus, choisis parmi : {characters}",
  textStrange: "Impossible ici : {characters}",
  textOver: "Trop long de {count}.",
  textLeft: "Place restante : {count}.",
  details: "En savoir plus",
  back: "Retour au brouillon",
  optional: "Facultatif. Sans réponse, cela compte comme « {declined} ».",
  declining: "Ne pas répondre est aussi une réponse : elle est transmise avec le même bruit que toute autre, et personne ne voit qui n’a pas répondu.",
  noText: "Je préfère ne rien écrire",
  ticks: "Parmi les {count} éléments de la liste, votre navigateur en tire un au hasard et indique, avec du bruit, si vous l’avez coché.",
  saysTick: "Votre navigateur a tiré « {item} » parmi {count} éléments. Le rapport dit que vous {ticked}. Il dit vrai avec une probabilité de {own} %, et le contraire avec {other} %.",
  tickedYes: "l’avez coché",
  tickedNo: "ne l’avez pas coché",
  missing: "Veuillez répondre à cette question.",
  invalid: "La question n’admet pas cette réponse.",
  privacyTitle: "Comment votre réponse est protégée",
  privacy:
    "Avant tout envoi, votre navigateur ajoute du bruit à la réponse. Seul le rapport bruité quitte cet appareil, et vous le voyez avant.",
  privacyRows:
    "Avant tout envoi, votre navigateur ajoute du bruit à vos réponses. Seuls le rapport bruité et les colonnes publiques quittent cet appareil, et vous voyez les deux avant.",
  columnsTitle: "Colonnes publiques, envoyées telles quelles",
  columnsNote:
    "Aucun bruit n’y est ajouté : elles ne sont pas protégées. Elles sont conservées avec votre rapport bruité et lui restent liées. Laissez vide ce que vous ne voulez pas donner.",
  col_integer: "Un nombre entier.",
  col_number: "Un nombre.",
  col_text: "256 caractères au plus.",
  col_boolean: "",
  col_date: "Une date.",
  col_empty: "laissé vide",
  columnInvalid: "Cela ne convient pas à la colonne « {name} ».",
  sentColumns: "Envoyé avec lui, sans bruit",
  reviewNoteRows:
    "Ce rapport et les colonnes publiques sont tout ce qui est envoyé, avec le numéro de la collecte et un nombre aléatoire qui évite de compter deux fois. Vos réponses protégées ne sont pas envoyées sans bruit, et cette page les a déjà oubliées.",
  epsilon:
    "La force du bruit est ε = {epsilon}. Si quelqu’un tient une de vos réponses pour un tirage à pile ou face, 50 %, votre rapport peut l’en rendre sûr à {sure} % au plus.",
  one_of: "Il y a {count} questions. Votre navigateur en tire une au hasard et ne rapporte que celle-là.",
  all_of: "Il y a {count} questions. Le rapport les couvre toutes, et ε est partagé entre elles.",
  joint_views:
    "Il y a {count} questions. Votre navigateur tire lui-même les quelques réponses qui entrent ensemble dans l’unique rapport bruité ; il ne dit rien des autres. ε est dépensé une seule fois, et non pour chaque question.",
  joint_coefficients:
    "Il y a {count} questions. Votre navigateur en tire lui-même quelques-unes et fait de vos réponses un seul signe, plus ou moins ; ce signe bruité est tout le rapport. ε est dépensé une seule fois, et non pour chaque question.",
  joint_grid:
    "Il y a {count} questions. Votre navigateur tire lui-même les réponses qui entrent ensemble dans l’unique rapport bruité, et la finesse avec laquelle il les regarde. ε est dépensé une seule fois, et non pour chaque question.",
  plan:
    "Cette question est posée en plusieurs tours, chaque fois à d’autres personnes. Qui a répondu à un tour n’est plus interrogé.",
  cohort:
    "Les résultats ne sont montrés qu’à partir de {count} rapports. Ni adresse, ni nom, ni heure n’est conservé avec un rapport.",
  cohortRows:
    "Les résultats ne sont montrés qu’à partir de {count} rapports. Hors les colonnes publiques, ni adresse, ni nom, ni heure n’est conservé avec un rapport.",
  more: "Comment cela marche, en chiffres exacts (en anglais)",
  show: "Montrer ce qui sera envoyé",
  once: "Le bruit est tiré une seule fois. Ensuite, la réponse ne peut plus être changée sur cet appareil.",
  reviewTitle: "Voici le rapport bruité qui sera envoyé",
  reviewNote:
    "C’est tout ce qui est envoyé, avec le numéro de la collecte et un nombre aléatoire qui évite de compter deux fois. Votre réponse n’est pas envoyée sans bruit, et cette page l’a déjà oubliée.",
  inWords: "En mots",
  saysValue:
    "Il dit « {value} ». Il dirait votre propre réponse avec une probabilité de {own} %, et chaque autre avec {other} %.",
  saysMarks:
    "Il marque {count} réponses sur {size} : {values}. Votre propre réponse est marquée avec une probabilité de {own} %, chaque autre avec {other} %.",
  saysMarksNone:
    "Il ne marque aucune des {size} réponses. Votre propre réponse est marquée avec une probabilité de {own} %, chaque autre avec {other} %.",
  saysBit: "C’est un seul bit : {bit}. Chaque nombre peut donner l’un ou l’autre.",
  saysBlock:
    "C’est le code {code} sur {codes}. Il convient à votre propre réponse avec une probabilité de {own} %, à chaque autre avec {other} %.",
  saysCode: "C’est un code brouillé de {bytes} octets.",
  saysCodeMany: "C’est un code brouillé de {bytes} octets qui convient à beaucoup de réponses.",
  saysCodeFew: "C’est un code brouillé de {bytes} octets qui ne convient qu’à quelques réponses.",
  saysCodeOne: "C’est un code brouillé de {bytes} octets qui ne convient guère à plus d’une réponse.",
  lessThan: "moins de {value}",
  moreThan: "plus de {value}",
  saysGroups:
    "C’est une indication bruitée sur le groupe où se trouve votre réponse, parmi {groups} groupes de réponses voisines, comme {example}. La finesse des groupes a été tirée au hasard ; chaque groupe compte ici comme une réponse.",
  saysLeaves:
    "C’est une indication bruitée sur votre réponse parmi les {groups} possibles, sans les regrouper. La finesse des groupes a été tirée au hasard.",
  saysPadded:
    "Un élément de votre liste, complétée par des blancs jusqu’à {length}, a été tiré au hasard ; une liste de plus de {length} n’a pas été complétée. L’élément tiré compte ici comme votre réponse.",
  saysAmong: "Ce tour ne porte que sur {choices} éléments ; les autres de votre liste ne jouent aucun rôle.",
  saysSize:
    "C’est une indication bruitée sur le nombre d’éléments de votre liste parmi les {choices} en question. Ce nombre compte ici comme votre réponse.",
  blank: "un blanc",
  saysPrefix:
    "C’est une indication bruitée sur les {digits} premières des {all} places de votre texte. Leur nombre a été tiré au hasard ; ce début compte ici comme votre réponse.",
  saysPrefixBits:
    "C’est une indication bruitée sur les {digits} premiers des {all} bits qui écrivent votre réponse. Leur nombre a été tiré au hasard ; ce début compte ici comme votre réponse.",
  saysGrid:
    "C’est une indication bruitée sur la combinaison de réponses où se trouve la vôtre, parmi {groups}, comme {example}. Leur finesse a été tirée au hasard ; chacune compte ici comme une réponse.",
  quoted: "« {text} »",
  saysView:
    "Votre navigateur a tiré lui-même les réponses à regarder : celles à {questions}. Chaque combinaison compte ici comme une réponse ; il y en a {groups}, comme {example}.",
  saysFine: "La finesse du découpage a été tirée elle aussi.",
  saysSign:
    "C’est un seul signe bruité : {sign}. Votre navigateur a tiré {questions}, et une règle publique fait des réponses plus ou moins. Le rapport dit le bon signe avec une probabilité de {own} %, et l’autre avec {other} %.",
  plus: "plus",
  minus: "moins",
  picked: "La question tirée au hasard est « {question} ».",
  odds:
    "Toute réponse peut mener à ce rapport, mais pas aussi souvent. Si quelqu’un tient une de vos réponses pour un tirage à pile ou face, 50 %, le rapport peut l’en rendre sûr à {sure} % au plus.",
  weak: "C’est presque une certitude : à cet ε, le bruit ne protège une réponse que faiblement.",
  send: "Envoyer ce rapport",
  later: "Pas maintenant",
  laterNote:
    "Rien n’a été envoyé. Le rapport bruité reste sur cet appareil pour ne pas être tiré à nouveau ; revenez quand vous voulez.",
  sending: "Envoi…",
  sentTitle: "Merci, votre rapport bruité est arrivé",
  sentNote:
    "Vous pouvez garder le reçu. Il n’en dit pas plus sur vous que le rapport bruité qu’il contient.",
  receipt: "Reçu",
  collection: "Collecte",
  sentReport: "Rapport",
  spent: "Dépensé",
  waitTitle: "Votre rapport attend une connexion",
  waitNote:
    "Il partira dès qu’il y en aura une. Vous pouvez fermer la page ; en la rouvrant, le même rapport est envoyé, jamais un autre.",
  retry: "Essayer maintenant",
  refusedTitle: "Le rapport n’a pas été accepté",
  refusedNote: "Le serveur dit : {reason}. Rien n’a été compté.",
  answeredTitle: "Vous avez déjà répondu",
  answeredNote: "Une seconde réponse en révélerait davantage ; il n’y en a donc qu’une par appareil.",
  closedTitle: "Cette collecte est close",
  closedNote: "Plus aucun rapport n’est accepté. Rien ne peut être envoyé de cette page.",
  passedTitle: "Le tour est terminé",
  passedNote:
    "Un rapport bruité a été tiré sur cet appareil pour un tour précédent et n’a jamais été envoyé. Ce tour est clos et le bruit n’est tiré qu’une fois ; il n’y a rien à faire ici.",
  preview: "Aperçu d’un brouillon : rien n’est conservé ni envoyé.",
  previewTitle: "L’aperçu est terminé",
  previewDone: "Dans la collecte publiée, le rapport aurait été envoyé maintenant.",
  again: "Recommencer",
  offline: "Vous êtes hors ligne. Vous pouvez répondre ; le rapport partira plus tard.",
  invited: "Cette collecte demande une invitation, et ce lien n’en a pas. Un rapport d’ici ne sera pas accepté.",
  ledgerTitle: "Ce que cet appareil a dépensé jusqu’ici",
  ledgerEmpty: "Rien encore.",
  ledgerNote: "Chaque collecte à laquelle vous répondez dépense un peu de confidentialité. Les montants s’ajoutent.",
  account: "Compte",
  accountRun: "Cette période",
  accountLife: "En tout",
  accountNote: "Les collectes répétées sont imputées à des comptes :",
  accountOf: "{spent} sur {cap}",
  accountRun_day: "sur {windows} jours consécutifs",
  accountRun_week: "sur {windows} semaines consécutives",
  accountRun_month: "sur {windows} mois consécutifs",
  state: "État",
  total: "En tout",
  state_sent: "envoyé",
  state_pending: "en attente",
  state_held: "non envoyé",
  state_refused: "refusé",
  notDrawn:
    "Aucun rapport n’a pu être fait de cette réponse. Rien n’a été envoyé et aucune vie privée n’a été dépensée. Dites-le à qui vous a interrogé : « {reason} »",
  broken:
    "Quelque chose ne fonctionne pas sur cette page. Un rapport non confirmé reste sur cet appareil et n’est jamais tiré à nouveau. Dites-le à qui vous a interrogé : « {reason} »",
  failedTitle: "Cette page ne peut être montrée en sûreté",
  failedNote:
    "Le document de cette collecte n’a pu être obtenu ou ne correspond pas à son adresse. Ne répondez pas ; réessayez plus tard.",
  storage:
    "Ce navigateur empêche la page de retenir quoi que ce soit ; elle ne peut promettre de ne tirer le bruit qu’une fois. Autorisez le stockage ou ouvrez la page dans sa propre fenêtre.",
  ownWindow: "Ouvrir le questionnaire dans sa propre fenêtre",
  language: "Langue",
  shuffleTitle: "Ce que le mélange apporte",
  shuffle_shares:
    "Votre navigateur scelle le rapport bruité et le partage en {count} parts, une pour chaque mélangeur. Aucun mélangeur ne peut le lire. Ensemble, ils mélangent tous les rapports, et ce n’est qu’ensuite que le collecteur peut les ouvrir : il apprend ce qui a été rapporté, mais pas par qui.",
  shuffle_layers:
    "Votre navigateur scelle le rapport bruité en couches, une pour chacun des {count} mélangeurs. Chacun retire sa couche et mélange tous les rapports avant de les transmettre ; ce n’est qu’ensuite que le collecteur peut les ouvrir. Il apprend ce qui a été rapporté, mais pas par qui.",
  shuffle_relay:
    "Votre navigateur scelle le rapport bruité, et un relais le transmet à un mélangeur, qui ne peut pas le lire. Le mélangeur mélange tous les rapports, et ce n’est qu’ensuite que le collecteur peut les ouvrir : il apprend ce qui a été rapporté, mais pas par qui.",
  shuffleFakes: "Les mélangeurs ajoutent {fakes} rapports inventés, qui sont ensuite retirés des résultats.",
  roleCollector: "Collecteur",
  roleShuffler: "Mélangeur {i}",
  roleShufflers: "Mélangeurs",
  roleRelay: "Relais",
  shuffleBehind:
    "Le relais voit votre adresse réseau, mais rien du rapport. Les mélangeurs ne voient pas votre adresse à l’envoi du rapport ; ils la voient si vous leur demandez plus tard s’il a participé.",
  shuffleSeen: "Les mélangeurs voient votre adresse réseau, comme tout serveur, mais pas ce que vous rapportez.",
  shuffleTrustMost:
    "Pour cela, vous devez compter sur le fait qu’au moins {honest} des {count} mélangeurs ne s’entendent pas avec le collecteur.",
  shuffleTrustAny:
    "Pour cela, vous devez compter sur le fait qu’au moins un des {count} mélangeurs ne s’entend pas avec le collecteur.",
  shuffleTrustOne:
    "Pour cela, vous devez compter sur le fait que le mélangeur ne s’entend ni avec le collecteur, ni avec le relais.",
  shuffleTogether:
    "Un même opérateur tient plusieurs rôles : {roles}. Il pourrait défaire le mélange. Rien n’est donc promis au-delà de ce que le bruit garde par lui-même.",
  shuffleTable: "Ce que votre rapport peut révéler au plus, et à qui",
  shuffleEpsilon: "ε = {epsilon}",
  shuffleWho: "À qui",
  shuffleMost: "Au plus",
  against_collector: "Au collecteur seul",
  against_others: "Au collecteur et à toutes les autres personnes interrogées ensemble",
  against_local: "Au collecteur et aux mélangeurs ensemble",
  byClaim: "affirmé par les opérateurs",
  byNoise: "gardé par le bruit seul, à qui que vous fassiez confiance",
  shuffleClaim:
    "Les deux premiers chiffres sont une affirmation des opérateurs. Tous l’ont signée ; votre navigateur a vérifié les signatures, pas le calcul. Les chiffres valent si au moins {minimum} personnes honnêtes participent, et peuvent manquer avec une probabilité de {delta}.",
  shuffleFlood:
    "Personne n’a besoin d’invitation ici. Qui envoie des foules de rapports inventés pourrait être tous les autres autour de vous ; contre cela, seul le deuxième chiffre protège.",
  shuffleCounted: "Cet appareil compte le dernier chiffre comme dépensé, quels que soient les autres.",
  reviewNoteShuffled:
    "Le rapport ne quitte cet appareil qu’une fois scellé, de sorte qu’aucun mélangeur ne peut le lire. Sont envoyés avec lui le numéro de la session et un nombre aléatoire, la place, qui vous permet de vérifier plus tard que le rapport a participé. Votre réponse n’est pas envoyée sans bruit, et cette page l’a déjà oubliée.",
  sentTitleShuffled: "Merci, les mélangeurs ont votre rapport scellé",
  sentNoteShuffled:
    "Il est compté si au moins {minimum} personnes participent avant la fin de la session. Le reçu indique sa place ; cette page peut ainsi vérifier si le rapport a participé.",
  answeredNoteShuffled: "Il n’y a qu’une réponse par appareil, car une deuxième en révélerait plus sur vous.",
  session: "Session",
  slot: "Place",
  waitTitleShuffled: "Votre rapport scellé attend",
  waitFor: "Pas encore de réponse de : {names}. Le rapport n’est compté que si tous ont leur part.",
  waitNoteShuffled:
    "Le rapport est gardé sur cet appareil. Vous pouvez fermer la page ; en la rouvrant, le même rapport est envoyé, jamais un autre, et jamais sans être scellé.",
  part_waiting:
    "La session prend encore des rapports. On peut voir si le vôtre participe pendant le mélange, et guère plus longtemps.",
  part_shown:
    "Un mélangeur montre votre rapport parmi {count} qui participent. Les signatures de tous suivront à la fin.",
  part_included:
    "Votre rapport a participé : tous les mélangeurs ont signé une liste de {count} rapports, et le vôtre y figure.",
  part_missing:
    "La session est terminée, et votre rapport n’est pas dans la liste que tous les mélangeurs ont signée. Il n’a pas été compté.",
  part_aborted:
    "La session a été abandonnée avant que rien n’atteigne le collecteur. Votre rapport est gardé sur cet appareil ; en ouvrant cette page, le même part dans la session suivante.",
  part_refused: "Ce qui a été publié sur cette session n’est pas valable : « {reason} »",
  checkPart: "Vérifier s’il a participé",
  hinderedTitle: "Vous ne pouvez pas répondre ici pour le moment",
  hindered_insecure:
    "Cette page n’a pas été ouverte par https. Les navigateurs ne scellent rien sur de telles pages, et votre rapport ne doit pas partir sans être scellé. Veuillez ouvrir la page par https.",
  hindered_browser:
    "Ce navigateur ne peut pas sceller de rapports : il lui manque X25519, Ed25519 ou AES-GCM. Veuillez en utiliser un plus récent. Rien n’est envoyé sans être scellé.",
  hindered_mode:
    "Cette page ne connaît pas la manière dont cette collecte est mélangée et ne peut donc pas sceller votre rapport. Rien n’est envoyé sans être scellé.",
  hindered_violation:
    "Ce que les participants au mélange ont publié n’est pas signé par tous, ou diffère du document de cette collecte. Veuillez ne pas répondre, et prévenir la personne qui vous a interrogé : « {reason} »",
  hindered_session:
    "Aucune session ne prend de rapports pour le moment : les mélangeurs ne sont pas encore prêts, ou la dernière session est terminée. Veuillez revenir plus tard.",
};
