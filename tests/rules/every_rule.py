"""Every rule of every rule set, once."""

from blockbuster.rules import PAPER_RULES, PEELING_RULES, RULES

EVERY_RULE = tuple(dict.fromkeys((*PAPER_RULES, *RULES, *PEELING_RULES)))
