"""The word lists behind hard facts and self-containedness: closed classes of English and Chinese, nothing learned."""

import re
from collections.abc import Iterable

from smartcache.word_classes import (
    AGREEING,
    AMOUNTS,
    AUXILIARIES,
    AYES,
    BARE_QUESTION_WORDS,
    BE_AFTER_ANOTHER,
    DEMANDS,
    DEMONSTRATIVES,
    DENIED_AUXILIARIES,
    DETERMINERS,
    FIRST_PERSON,
    FIRST_PERSON_SHORT,
    GREETINGS,
    KINDS_OF_PLACE,
    KINDS_OF_TIME,
    LINKING,
    NOES,
    OKAYS,
    PAST_AUXILIARIES,
    PLEAS,
    PREPOSITIONS,
    QUESTION_WORDS,
    SECOND_PERSON,
    SHORT_QUESTIONS,
    THANKS,
    THIRD_PERSON,
    THIRD_PERSON_SELF,
)


def one_of(words: Iterable[str]) -> str:
    """The pattern of any of these words; of two that begin alike, the longer first."""
    return f"(?:{'|'.join(sorted(words, key=lambda word: (-len(word), word)))})"


NUMBER_WORDS = {
    word: str(number)
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen twenty".split()
    )
    if word != "one"  # mostly a pronoun
} | {
    "thirty": "30",
    "forty": "40",
    "fifty": "50",
    "sixty": "60",
    "seventy": "70",
    "eighty": "80",
    "ninety": "90",
    "hundred": "100",
    "thousand": "1000",
}

NEGATIONS = frozenset(
    """not no never cannot nor neither none nobody nothing nowhere unable without hardly scarcely barely nope except
    excluding""".split()
)

# The same words where they deny nothing: "or not", "no problem", "I don't know why …", and a "no" that answers before a
# sentence of its own ("No, book it for three").
NOT_NEGATION = re.compile(
    r"""\b(?:or|if|why|whether\ or)\ not\b|\bnot\ only\b|\bno\ (?:problem|worries|matter|rush|doubt|thanks)\b
        |\b(?:do(?:es)?n't|do(?:es)?\ not)\ (?:know|understand|remember|mind|matter)\b
        |\b(?:am|i'm|is|are)\ not\ sure\b
        |\bcan't\ wait\b|^\W*no(?:pe)?\s*[,.!]+\ *(?=(?:[^\s]+\s+){3})""",
    re.I | re.X,
)

# Words that line up equals: what they join may come in any order.
ALIGNING = frozenset("and or vs versus plus 和 与 跟 或 及 同".split())

# Who does something to whom: each in one form.
PERSONS = {
    word: forms.split()[0]
    for forms in ("i me", "we us", "you", "he him", "she her", "they them")
    for word in forms.split()
}

# Words whose exchange leaves a question what it was: articles, auxiliaries of the present, politeness.
LIGHT_WORDS = (
    (AUXILIARIES - PAST_AUXILIARIES - {"should", "may", "might", "must"})
    | (FIRST_PERSON - {"mine", "ours"})
    | (SECOND_PERSON - {"yours"})
    | OKAYS
    | GREETINGS
    | PLEAS
    | THANKS
    | frozenset(
        """a an the of for in on at to and so be i'm i'd we're there any some just exactly
        well actually really also""".split()
    )
)

OPPOSITE_PREFIXES = ("un", "dis", "in", "im", "de", "non", "non-", "ir", "il", "mis", "anti")

# Each axis: the stems (see facts.stem) of one side, and of the other.
ANTONYMS: tuple[tuple[frozenset[str], frozenset[str]], ...] = tuple(
    (frozenset(one.split()), frozenset(other.split()))
    for one, other in (
        ("on", "off"),
        ("can could may", "must"),
        ("abov over", "below under beneath"),
        ("open", "clos shut"),
        ("enabl activat", "disabl deactivat"),
        ("start begin launch began begun", "stop end finish quit halt"),
        ("add insert attach", "remov delet detach"),
        ("creat mak build", "destroy delet"),
        ("allow permit", "deny forbid block ban prohibit disallow"),
        ("accept approv", "reject declin refus"),
        ("includ", "exclud"),
        ("increas rais", "decreas reduc lower"),
        ("more", "less fewer"),
        ("most", "least"),
        ("maximum max", "minimum min"),
        ("high highest higher", "low lowest lower"),
        ("big bigger biggest larg larger largest", "small smaller smallest"),
        ("long longer longest", "short shorter shortest"),
        ("fast faster fastest quick", "slow slower slowest"),
        ("cheap cheaper cheapest", "expensiv dear"),
        ("best better", "worst wors"),
        ("good", "bad"),
        ("win won winn", "los lost"),
        ("new newest newer latest", "old oldest older earliest"),
        ("first", "last"),
        ("befor", "after"),
        ("previou prior", "next following"),
        ("with", "without"),
        ("up upgrad", "down downgrad"),
        ("upload", "download"),
        ("import", "export"),
        ("read", "writ"),
        ("encrypt", "decrypt"),
        ("encod", "decod"),
        ("compress", "decompress extract"),
        ("lock", "unlock"),
        ("connect", "disconnect"),
        ("subscrib", "unsubscrib cancel"),
        ("install", "uninstall"),
        ("sign-in login", "sign-out logout"),
        ("buy purchas", "sell"),
        ("send", "receiv"),
        ("push", "pull"),
        ("deposit", "withdraw"),
        ("borrow", "lend"),
        ("credit", "debit"),
        ("incom", "expens"),
        ("win won", "los lost"),
        ("born birth", "died death di"),
        ("marri", "divorc"),
        ("left", "right"),
        ("inside indoor", "outside outdoor"),
        ("hot hotter warm heat", "cold colder cool"),
        ("day", "night"),
        ("morning", "evening"),
        ("arriv arrival", "depart departur leav"),
        ("success succeed", "fail failur"),
        ("true", "fals"),
        ("public", "privat"),
        ("internal", "external"),
        ("legal", "illegal"),
        ("same common alik similar similariti", "different differ differenc"),
        ("all every", "none"),
        ("advantag pro", "disadvantag con"),
        ("encourag", "discourag"),
        ("mal man men", "femal woman women"),
        ("father dad", "mother mom mum"),
        ("husband", "wif"),
        ("brother", "sister"),
        ("son", "daughter"),
        ("north", "south"),
        ("east", "west"),
        ("input", "output"),
        ("client", "server"),
        ("front", "back rear"),
        ("top", "bottom"),
        ("many", "few"),
        ("free", "paid"),
        ("hav has had", "lack"),
        ("well", "badly poorly"),
        ("full-tim full", "part-tim partial"),
        ("overweight", "underweight"),
        ("singl", "multipl doubl"),
        ("sync", "async"),
        ("ascend", "descend"),
        ("vertical", "horizontal"),
        ("show", "hid"),
        ("expand", "collaps"),
        ("save", "discard"),
        ("parent", "child"),
        ("refund", "charg"),
    )
)

CHINESE_ANTONYMS = (
    ("打开", "关闭"),
    ("启用", "禁用"),
    ("允许", "禁止"),
    ("增加", "减少"),
    ("上传", "下载"),
    ("之前", "之后"),
    ("最大", "最小"),
    ("最高", "最低"),
    ("最多", "最少"),
    ("最早", "最晚"),
    ("最新", "最旧"),
    ("最长", "最短"),
    ("买", "卖"),
    ("开始", "结束"),
    ("包括", "排除"),
    ("优点", "缺点"),
    ("男", "女"),
    ("出生", "去世"),
    ("安装", "卸载"),
    ("登录", "退出"),
)
CHINESE_NEGATION = re.compile(r"[不没未别]|无法|不能")
CHINESE_NOT_NEGATION = re.compile(
    r"(\w)[不没]\1|有没有|不错|不同|差不多|不好意思|特别|别人|区别|分别|级别|类别|性别|不仅|不但"
)

WHAT_IT_COSTS = r"what (?:do|does|did|will|would) [^?.!]{1,60} costs?"

# What a question asks for, where its words say so; "what", "which", "why" and a bare "how" may ask for anything.
INTERROGATIVES = (
    (rf"when|what {one_of(KINDS_OF_TIME)}|which {one_of(KINDS_OF_TIME)}", "when"),
    (rf"where|(?:what|which) {one_of(KINDS_OF_PLACE)}", "where"),
    (r"who|whom|whose|(?:what|which) person", "who"),
    (r"how long|how many (?:seconds|minutes|hours|days|weeks|months|years)", "how long"),
    (r"how many|what number of", "how many"),
    (rf"how much|what (?:price|cost|amount)|{WHAT_IT_COSTS}", "how much"),
    (r"how old|what age", "how old"),
    (r"how often", "how often"),
    (r"how far", "how far"),
    (r"how tall|how high", "how high"),
)

# Stems of the words that ask, where two questions ask for a thing of one kind ("when", "what year").
ASKING = BARE_QUESTION_WORDS | frozenset("whom whos year tim dat day month plac person many much".split())

# Stems of the words that stand for what was said before.
POINTING = (
    THIRD_PERSON
    | BE_AFTER_ANOTHER
    | frozenset("this thi that thes thos ther here her one ones so was wer did had".split())
)

# Words that may start a sentence, and so have a capital there without being names; they carry no content either.
SENTENCE_STARTERS = (
    DETERMINERS
    | FIRST_PERSON
    | FIRST_PERSON_SHORT
    | SECOND_PERSON
    | THIRD_PERSON
    | THIRD_PERSON_SELF
    | QUESTION_WORDS
    | SHORT_QUESTIONS
    | AUXILIARIES
    | BE_AFTER_ANOTHER
    | DENIED_AUXILIARIES
    | LINKING
    | PREPOSITIONS
    | DEMANDS
    | AMOUNTS
    | AYES
    | NOES
    | OKAYS
    | GREETINGS
    | PLEAS
    | THANKS
    | frozenset(
        """if while because although though per upon via within across along among around behind beneath beside between
        beyond except near through throughout toward towards
        myself itself there here whether doing done having ought you're you've he's she's it's they're that's there's
        let's not indeed alright besides aside sure thank dear sorry well now just only even still yet
        too very really quite maybe perhaps again else instead actually anyway
        say let make get go know want need like think see help ask find
        neither none many much more few less other another such same own
        one ones thing things something anything everything nothing someone anyone everyone
        happen happened happens happening interesting important significant fact facts way ways kind sort type lot bit
        got gets getting gave given went going came come comes take takes took taken use used using tried try
        """.split()
    )
)

# Signs that a question points at something said before.
ANAPHORA = re.compile(
    rf"""\b(?:{one_of(THIRD_PERSON | THIRD_PERSON_SELF | DEMONSTRATIVES)}|former|latter
        |ones?|same|such|above|aforementioned|previous(?:ly)?|earlier|another|others?|else|instead|again|too|either
        |neither|both|also|more|then|so|there|there's|it's|that's|which\ of|any\ of|all\ of
        |(?:an|the|some|more)\ examples?(?!\ (?:of|for|that)))\b""",
    re.I | re.X,
)
# The same words where they point at nothing: "is it possible to", "how long does it take", "is there a", "more than".
NOT_ANAPHORA = re.compile(
    r"""\b(?:is|was|are|were|will|would|isn't|aren't)\ there\b(?=\s+\w)|\bthere\ (?:is|are|was|were|will|a|any|an)\b
        |\b(?:is|was|would|if|when|makes?)\ it\ (?:\w+\ )?(?:possible|ok|okay|safe|true|necessary|legal|worth|better|
           normal|mandatory|required|allowed|free|easy|hard|difficult|important|best|better)\b
        |\bit\ (?:is|was|'s)\ (?:possible|safe|true|necessary|legal)\b
        |\b(?:does|did|will|would)\ it\ (?:take|cost)\ (?:\w+\ ){0,2}to\b|\bit\ takes?\ to\b
        |\bwhat\ time\ is\ it\b|\bmore\ than\b|\bone\ of\b|\bso\ that\b|\bsuch\ as\b|\bthat's\ right\b
        |\bwho\ else\b(?=\s+\w+\s+\w+\s+\w+)|\b(?:both|either|neither)\b(?=.+\b(?:and|or|nor)\b)
        |(?<=\w)\ that\ (?=(?:can|could|will|would|has|have|had|does|do|did|are|were|i|you|we)\b)""",
    re.I | re.X,
)
ELLIPTIC_START = re.compile(
    rf"^\W*(?:{one_of(LINKING | OKAYS)}|{one_of(AYES)}|{one_of(NOES)}"
    rf"|{one_of(AGREEING - {'correct'})}|what about|how about|how come|why not"
    r"|what if|what else|who else|anything|any other|what happened next|no thanks)\b",
    re.I,
)
CHINESE_ANAPHORA = re.compile(
    r"[他她它]们?|[这那][个些部首位里儿边种样次]?|该|此|其(?!实|他|中)|上述|前者|后者|呢[？?]?$|^(?:那|还有|另外|然后)"
)
