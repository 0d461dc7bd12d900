"""Classes of characters that patterns name: `\\p{Greek}`, `\\pN`, `\\p{Lowercase_Letter}`.

The names are those of Go 1.25 and newer, Unicode 15.0. Go ignores case, spaces, underscores and hyphens in them; RE2 knows each by one
spelling.
"""

from __future__ import annotations

from typing import Final

_CATEGORIES: Final = "Any C Cc Cf Co Cs L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So Z Zl Zp Zs"
_ALIASES: Final = """
Close_Punctuation=Pe Combining_Mark=M Connector_Punctuation=Pc Control=Cc Currency_Symbol=Sc Dash_Punctuation=Pd
Decimal_Number=Nd Enclosing_Mark=Me Final_Punctuation=Pf Format=Cf Initial_Punctuation=Pi Letter=L Letter_Number=Nl
Line_Separator=Zl Lowercase_Letter=Ll Mark=M Math_Symbol=Sm Modifier_Letter=Lm Modifier_Symbol=Sk Nonspacing_Mark=Mn
Number=N Open_Punctuation=Ps Other=C Other_Letter=Lo Other_Number=No Other_Punctuation=Po Other_Symbol=So
Paragraph_Separator=Zp Private_Use=Co Punctuation=P Separator=Z Space_Separator=Zs Spacing_Mark=Mc Surrogate=Cs Symbol=S
Titlecase_Letter=Lt Uppercase_Letter=Lu cntrl=Cc digit=Nd punct=P
"""
_SCRIPTS: Final = """
Adlam Ahom Anatolian_Hieroglyphs Arabic Armenian Avestan Balinese Bamum Bassa_Vah Batak Bengali Bhaiksuki Bopomofo
Brahmi Braille Buginese Buhid Canadian_Aboriginal Carian Caucasian_Albanian Chakma Cham Cherokee Chorasmian Common
Coptic Cuneiform Cypriot Cypro_Minoan Cyrillic Deseret Devanagari Dives_Akuru Dogra Duployan Egyptian_Hieroglyphs
Elbasan Elymaic Ethiopic Georgian Glagolitic Gothic Grantha Greek Gujarati Gunjala_Gondi Gurmukhi Han Hangul
Hanifi_Rohingya Hanunoo Hatran Hebrew Hiragana Imperial_Aramaic Inherited Inscriptional_Pahlavi Inscriptional_Parthian
Javanese Kaithi Kannada Katakana Kawi Kayah_Li Kharoshthi Khitan_Small_Script Khmer Khojki Khudawadi Lao Latin Lepcha
Limbu Linear_A Linear_B Lisu Lycian Lydian Mahajani Makasar Malayalam Mandaic Manichaean Marchen Masaram_Gondi
Medefaidrin Meetei_Mayek Mende_Kikakui Meroitic_Cursive Meroitic_Hieroglyphs Miao Modi Mongolian Mro Multani Myanmar
Nabataean Nag_Mundari Nandinagari New_Tai_Lue Newa Nko Nushu Nyiakeng_Puachue_Hmong Ogham Ol_Chiki Old_Hungarian
Old_Italic Old_North_Arabian Old_Permic Old_Persian Old_Sogdian Old_South_Arabian Old_Turkic Old_Uyghur Oriya Osage
Osmanya Pahawh_Hmong Palmyrene Pau_Cin_Hau Phags_Pa Phoenician Psalter_Pahlavi Rejang Runic Samaritan Saurashtra Sharada
Shavian Siddham SignWriting Sinhala Sogdian Sora_Sompeng Soyombo Sundanese Syloti_Nagri Syriac Tagalog Tagbanwa Tai_Le
Tai_Tham Tai_Viet Takri Tamil Tangsa Tangut Telugu Thaana Thai Tibetan Tifinagh Tirhuta Toto Ugaritic Vai Vithkuqi
Wancho Warang_Citi Yezidi Yi Zanabazar_Square
"""
_IGNORED: Final = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz", " _-")
_CASED, _ASSIGNED = r"\p{Lu}\p{Ll}\p{Lt}", r"\pL\pM\pN\pP\pS\pZ\p{Cc}\p{Cf}\p{Co}\p{Cs}"
_UNIONS: Final[dict[str, tuple[bool, str]]] = {
    "ascii": (True, r"\x00-\x7F"),
    "lc": (True, _CASED),
    "casedletter": (True, _CASED),
    "assigned": (True, _ASSIGNED),
    "cn": (False, _ASSIGNED),
    "unassigned": (False, _ASSIGNED),
}
"""What RE2 does not know by name: the members of a class between brackets, and whether these are in the class or all others."""


def _read_names() -> dict[str, str]:
    names = {name.translate(_IGNORED): name for name in (*_SCRIPTS.split(), *_CATEGORIES.split())}
    for pair in _ALIASES.split():
        alias, _, category = pair.partition("=")
        names[alias.translate(_IGNORED)] = category
    return names


_NAMES: Final = _read_names()


def write_class(name: str, positive: bool, bracketed: bool) -> str | None:
    """The class of this name, or of all other characters, in RE2's syntax, `bracketed` as part of `[...]`; None if it cannot be written."""
    name = name.translate(_IGNORED)
    if name in _NAMES:
        return rf"\{'p' if positive else 'P'}{{{_NAMES[name]}}}"
    if name not in _UNIONS:
        return None
    among, members = _UNIONS[name]
    if not bracketed:
        return f"[{'' if among == positive else '^'}{members}]"
    return members if among == positive else None
