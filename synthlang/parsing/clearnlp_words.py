"""Word lists of the conversion from ClearNLP: closed classes, and what EWT treats by the word."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Other verbs are never written so, as long as they are no auxiliaries.
FORMS_OF_BE = _words("""
    be am is are was were been being 's ’s s 'm ’m m 're ’re re
""")
# Adverbs that can be the predicate of *be*: he is here.
PLACES = _words("""
    here there where how away back out up down over off on in home abroad online why when then
""")
# A clause before one of these is what is said or thought, not a run-on sentence.
SPEECH = _words("""
    say tell ask add think believe know report write note claim state announce explain suggest reply argue
    warn admit insist mean guess suppose hope feel see hear call read declare assume bet understand wonder
""")
# The person who is told something is iobj in EWT, with or without the thing told.
TAKE_RECIPIENT = _words("""
    tell ask remind assure warn urge advise notify inform reassure trust convince persuade promise allow
    permit
""")
# able to go: the clause shares the subject and is xcomp; with other adjectives advcl.
ADJECTIVES_WITH_XCOMP = _words("""
    able unable willing unwilling likely unlikely ready eager sure certain determined about afraid supposed
    bound prepared due reluctant set inclined anxious apt
""")
# spend time reading: ClearNLP has xcomp, EWT advcl.
VERBS_WITH_ADVCL = _words("""
    spend use call design wait leave vote
""")
# Adjectives keep their part of speech inside names in EWT: National Guard.
NAME_ADJECTIVES = _words("""
    united new old great best high higher senior junior prime middle white black red blue green big little
    good happy first second third grand holy far long short hot wild dear real human chief royal saudi arab
    thai afghan czech french dutch welsh islamic supreme global general common free open special modern
    private public independent executive foreign medical joint sunni shia moslem muslim hindu christian tamil
    lower upper deep fresh fine
""")
# Nouns with the ending of an adjective.
NOUNS_LIKE_ADJECTIVES = _words("""
    general journal canal hospital festival capital memorial trial funeral material tutorial manual ritual
    clinic music traffic topic public logic magic fabric mechanic picnic fish dish librarian
    physician guardian politician technician musician drive archive executive detective native motive
    initiative representative library secretary diary salary january february canary boundary dictionary
    summary anniversary elementary julian adrian brian vivian ian christian indian romance pattern lantern
    western arctic atlantic pacific baltic italian
""")
# nmod:desc before the name of a person.
TITLES = _words("""
    mr mr. mrs mrs. ms ms. miss dr dr. st. saint prof prof. professor president senator sen. sen governor gov.
    gov king queen prince princess sir lord lady pope captain capt. general gen. colonel col. lt. sgt.
    minister secretary judge justice doctor chairman rev. reverend rep. congressman mayor father sister uncle
    aunt detective officer ayatollah sheikh
""")
MONTHS = _words("""
    january february march april may june july august september october november december jan feb mar apr jun
    jul aug sep sept oct nov dec jan. feb. mar. apr. jun. jul. aug. sep. sept. oct. nov. dec.
""")
HALF_DAYS = _words("""
    am pm a.m. p.m. a.m p.m
""")
# Signs that head their amount in EWT.
CURRENCY = _words("""
    $ £ € ¥ us$ usd eur
""")
# First words of two-word prepositions that are no prepositions themselves.
FIRST_OF_TWO = _words("""
    according due because instead prior such rather thanks
""")
