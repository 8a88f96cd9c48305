"""The classes of English words under one name each: what the other lists of words, and their patterns, are built from.

A list that takes part of a class only, or more, says so where it is built.
"""

# Auxiliaries.
BE = frozenset("am is are was were".split())
BE_AFTER_ANOTHER = frozenset("be been being".split())
DO = frozenset("do does did".split())
HAVE = frozenset("has have had".split())
MODALS = frozenset("can could will would shall should may might must".split())
AUXILIARIES = BE | DO | HAVE | MODALS
PAST_AUXILIARIES = frozenset("was were did had".split())
# Of most questions.
OPENING_AUXILIARIES = frozenset("is are was were do does did can could will would should has have".split())
DENIED_AUXILIARIES = frozenset(
    """isn't aren't wasn't weren't don't doesn't didn't hasn't haven't hadn't can't couldn't won't wouldn't shouldn't
    mustn't""".split()
)

# What asks.
QUESTION_WORDS = frozenset("who whom whose what which where when why how".split())
BARE_QUESTION_WORDS = QUESTION_WORDS - {"whom", "whose"}
SHORT_QUESTIONS = frozenset("who's what's where's when's how's".split())
KINDS_OF_TIME = frozenset("time year date day month".split())
KINDS_OF_PLACE = frozenset("place city country town location".split())
DEMANDS = frozenset("tell give show list explain describe".split())

# Pronouns and what else stands before a noun.
ARTICLES = frozenset("a an the".split())
OWNERS = frozenset("my your his her its our their".split())
DEMONSTRATIVES = frozenset("this that these those".split())
DETERMINERS = ARTICLES | OWNERS | DEMONSTRATIVES
FIRST_PERSON = frozenset("i me my mine we us our ours".split())
FIRST_PERSON_SHORT = frozenset("i'm i've i'd i'll we're we've".split())
SECOND_PERSON = frozenset("you your yours".split())
HE = frozenset("he him his himself".split())
SHE = frozenset("she her hers herself".split())
THEY = frozenset("they them their theirs themselves".split())
THIRD_PERSON_SELF = frozenset("himself herself itself themselves".split())
THIRD_PERSON = (HE | SHE | THEY | {"it", "its"}) - THIRD_PERSON_SELF
PRONOUNS = frozenset("i me we us you he him she her it they them".split())
AMOUNTS = frozenset("all any both each either every most some".split())
ORDINALS = frozenset("first second third fourth fifth sixth seventh eighth ninth tenth".split())

# What joins and places.
JOINING = frozenset("and but or so".split())
LINKING = JOINING | {"also", "then"}  # what a sentence may begin with that goes on
PREPOSITIONS = frozenset(
    """to of for in on at from into onto out up down off over under above below inside outside with without by about as
    than before after during until since against""".split()
)

# What people say to each other.
AYES = frozenset("yes yeah yea yep yup".split())
NOES = frozenset("no nope nah".split())
AGREEING = frozenset("sure correct right".split())
OKAYS = frozenset("ok okay".split())
PLEAS = frozenset("please pls plz".split())
THANKS = frozenset("thanks thx".split())
GREETINGS = frozenset("hi hello hey".split())
PRAISE = frozenset("good great fine perfect nice cool awesome excellent wonderful lovely".split())
SAYING = frozenset("say says said saying".split())
