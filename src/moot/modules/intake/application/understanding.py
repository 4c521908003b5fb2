"""What a question is after, told without a model: by its words, and by the companies that it names."""

from collections.abc import Sequence

from moot.modules.intake.application.follow_ups import Spoken, spoken_of
from moot.modules.intake.application.language import detect
from moot.modules.intake.application.wording import (
    about_some_share,
    plain,
    points_nowhere,
    refusal,
    reply,
    says_nothing,
    small_talk,
)
from moot.modules.intake.domain.ports import Companies
from moot.modules.intake.domain.question import Intent, Mention, Understanding
from moot.shared.domain.messages import LIST_SEPARATOR

_LONGEST_TITLE = 60
_ROOT = 30  # of a question that goes on in another
_CHOICES_TOLD = 5


class Understander:
    def __init__(self, companies: Companies) -> None:
        self._companies = companies

    async def understand(
        self, text: str, *, previous: Understanding | None = None, default_locale: str
    ) -> Understanding:
        """`previous` is the question before in the same conversation: what this one leaves out is taken from it."""
        asked = plain(text)
        named = await self._companies.mentioned(asked)
        locale = _locale(asked, named, previous) or default_locale
        if why := refusal(asked):
            return _told(asked, "refused", locale, reply(why, locale))
        spoken = spoken_of(asked, named, previous)
        if not spoken.mentions and (tone := small_talk(asked)):
            return _told(asked, "small_talk", locale, reply(tone, locale))
        if spoken.mentions:
            return _about_companies(asked, locale, spoken, previous)
        return _about_anything(asked, locale, spoken, previous)


def _locale(text: str, named: Sequence[Mention], previous: Understanding | None) -> str | None:
    """A follow-up that brings nothing but names stays in the language of the talk."""
    if previous is None:
        return detect(text)
    for mention in named:
        text = text.replace(mention.text, " ")
    return detect(text) or previous.locale


def _about_companies(text: str, locale: str, spoken: Spoken, previous: Understanding | None) -> Understanding:
    unsure = next((mention for mention in spoken.mentions if not mention.certain), None)
    return Understanding(
        intent="unclear" if unsure else "equity",
        locale=locale,
        title=_title(text, spoken, previous),
        mentions=spoken.mentions,
        aspects=spoken.aspects,
        comparing=spoken.comparing,
        reply=_which(unsure, locale) if unsure else None,
    )


def _about_anything(text: str, locale: str, spoken: Spoken, previous: Understanding | None) -> Understanding:
    researched = previous is not None and previous.intent == "research"
    if about_some_share(text) and not (researched and spoken.continued):
        asked_back = _told(text, "unclear", locale, reply("which_company", locale))
        return asked_back.model_copy(update={"aspects": spoken.aspects})
    if (says_nothing(text) or points_nowhere(text)) and not (researched and spoken.continued):
        return _told(text, "unclear", locale, reply("what", locale))
    title = f"{previous.title[:_ROOT]}: {text}" if previous and researched and spoken.continued else text
    return _told(title, "research", locale, None)


def _told(title: str, intent: Intent, locale: str, said: str | None) -> Understanding:
    return Understanding(intent=intent, locale=locale, title=_short(title), reply=said)


def _which(mention: Mention, locale: str) -> str:
    names = mention.names or ("",) * len(mention.symbols)
    choices = [f"{s} {n}".strip() for s, n in zip(mention.symbols, names, strict=True)][:_CHOICES_TOLD]
    separator = LIST_SEPARATOR.get(locale, ", ")
    return reply("which_of", locale, text=mention.text, choices=separator.join(choices))


def _title(text: str, spoken: Spoken, previous: Understanding | None) -> str:
    """Companies that a question leaves out stand before it; who answers a question back asks what was asked."""
    if previous is None or not spoken.continued:
        return _short(text)
    if previous.intent == "unclear" and len(text) < _ROOT:
        text = previous.title
    left_out = [mention for mention in spoken.mentions if mention.text not in text]
    names = " / ".join(mention.names[0] if mention.names else mention.text for mention in left_out)
    return _short(f"{names}: {text}" if names else text)


def _short(title: str) -> str:
    title = title.rstrip(" ?？。.!！") or title
    return title if len(title) <= _LONGEST_TITLE else f"{title[: _LONGEST_TITLE - 1]}…"
