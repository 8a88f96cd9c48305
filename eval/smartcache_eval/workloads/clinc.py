"""CLINC150: short questions to an assistant by intent; of them those intents whose every question has one answer."""

from __future__ import annotations

import json
from pathlib import Path

from smartcache_eval.folder import file_in
from smartcache_eval.steps import Step, conversation

# Left out are intents that carry something which decides the answer: a text to translate, a city, an amount.
FIXED = frozenset(
    "routing min_payment interest_rate pin_change improve_credit_score apr redeem_rewards expiration_date damaged_card "
    "report_lost_card application_status replacement_card_duration oil_change_how jump_start mpg tire_change "
    "tire_pressure gas_type lost_luggage next_holiday payday w2 rollover_401k pto_balance direct_deposit "
    "who_made_you meaning_of_life who_do_you_work_for do_you_have_pets what_are_your_hobbies what_is_your_name "
    "where_are_you_from are_you_a_bot how_old_are_you what_can_i_ask_you user_name reset_settings flip_coin".split()
)


def steps(folder: Path) -> list[Step]:
    """The validation questions, 20 an intent; the truth, and the group, is the intent."""
    rows = json.loads(file_in(folder, "clinc150", "raw", "data_full.json").read_text(encoding="utf-8"))["val"]
    return [Step(conversation([], text.strip()), intent, intent) for text, intent in rows if intent in FIXED]
