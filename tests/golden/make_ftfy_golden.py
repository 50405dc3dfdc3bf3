"""Make tests/golden/corpus/ftfy.jsonl: texts and what ftfy's default configuration makes of them.

    $(scripts/oracle-env | tail -n 1) -m pip install ftfy
    $(scripts/oracle-env | tail -n 1) tests/golden/make_ftfy_golden.py

A line is {"kind": ..., "text": ..., "fixed": ...}; the first has the version. Kinds:

  clean      sentences in many languages, as they are
  garbled    the same as UTF-8 that was read as windows-1252 (bytes it lacks as Latin-1), and as Latin-1
  twice      garbled twice
  mixed      a garbled sentence beside a clean one on a line
  word       one garbled word in an English line, for each word of the sentences
  spaced     the same with U+00A0 made a space
  random     characters of windows-1252, leads and continuations of UTF-8, and others, by ftfy with latin-1 and
             windows-1252 as its only encodings

and one line {"signs": ..., "garbled": ...}: whether ftfy takes "x" + a + b + "y" for garbled, for each pair of signs.
  rules      HTML's references, controls, widths, ligatures, quotes, line ends, escapes, normalisation
"""

import json
import random
from pathlib import Path

import ftfy
from ftfy import chardata
from ftfy.badness import is_bad

OUT = Path(__file__).parent / "corpus" / "ftfy.jsonl"

SENTENCES = [
    "The caf\u00e9 opens at seven \u2013 or so they said.",
    "\u201cWhy not?\u201d she asked. \u2018Because it\u2019s late\u2026\u2019",
    "Prices rose by \u20ac5, then by \u00a33 \u2014 more than the \u00bd we had planned.",
    "Die M\u00fcller k\u00f6nnen gr\u00f6\u00dfere \u00c4pfel \u00fcber die Stra\u00dfe tragen.",
    "\u00dcber \u00d6sterreich zog ein \u00c4rgernis herauf.",
    "Il a d\u00e9j\u00e0 mang\u00e9 \u00e0 No\u00ebl, o\u00f9 \u00eatre na\u00eff \u00e7a co\u00fbte cher.",
    "\u00ab C\u2019est l\u2019\u0153uvre d\u2019un ma\u00eetre \u00bb, dit-il.",
    "El ni\u00f1o pregunt\u00f3: \u00bfd\u00f3nde est\u00e1 el ping\u00fcino? \u00a1All\u00ed!",
    "A tradi\u00e7\u00e3o n\u00e3o \u00e9 s\u00f3 uma cole\u00e7\u00e3o de h\u00e1bitos.",
    "Perch\u00e9 la citt\u00e0 \u00e8 cos\u00ec lontana, pi\u00f9 di ieri?",
    "P\u0159\u00edli\u0161 \u017elu\u0165ou\u010dk\u00fd k\u016f\u0148 \u00fap\u011bl \u010f\u00e1belsk\u00e9 \u00f3dy.",
    "Zaž\u00f3\u0142\u0107 g\u0119\u015bl\u0105 ja\u017a\u0144 w \u0142\u00f3dce.",
    "\u00c1rv\u00edzt\u0171r\u0151 t\u00fck\u00f6rf\u00far\u00f3g\u00e9p j\u00f6tt.",
    "Bl\u00e5b\u00e6rgr\u00f8d sm\u00f8rer man ikke p\u00e5 \u00e6bler.",
    "Fl\u00e4skl\u00e4gg i \u00d6rebro \u00e4r b\u00e4ttre \u00e4n \u00e5l.",
    "\u00deetta er \u00edslenska me\u00f0 \u00fe\u00f3 nokkrum st\u00f6fum.",
    "\u0130stanbul'da g\u00fczel bir ak\u015fam ya\u011fmuru ba\u015flad\u0131.",
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043a\u0430\u043a \u0434\u0435\u043b\u0430 \u0441\u0435\u0433\u043e\u0434\u043d\u044f?",
    "\u0423 \u043d\u0430\u0441 \u0432\u0441\u0435 \u0434\u043e\u0431\u0440\u0435, \u0434\u044f\u043a\u0443\u044e.",
    "\u039a\u03b1\u03bb\u03b7\u03bc\u03ad\u03c1\u03b1 \u03c3\u03b5 \u03cc\u03bb\u03bf\u03c5\u03c2 \u03b5\u03b4\u03ce.",
    "\u05e9\u05dc\u05d5\u05dd \u05dc\u05db\u05d5\u05dc\u05dd.",
    "\u0645\u0631\u062d\u0628\u0627 \u0628\u0643\u0645 \u0641\u064a \u0627\u0644\u0645\u062f\u064a\u0646\u0629.",
    "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e.",
    "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01",
    "\u4e16\u754c\u4f60\u597d\uff0c\u4eca\u5929\u5929\u6c14\u5f88\u597d\u3002",
    "\u3053\u3093\u306b\u3061\u306f\u3001\u5143\u6c17\u3067\u3059\u304b\u3002",
    "\uc548\ub155\ud558\uc138\uc694 \uc138\uacc4.",
    "All done \u2714 and a smile \U0001f600 with love \u2764\ufe0f.",
    "A ten \u00b0C day, 3 \u00d7 4 \u00b1 1, \u00b5m and \u00b2 and \u00b3.",
    "Acme\u2122 and \u00a9 2019 Widget\u00ae, \u00a7 5, \u00b6 2.",
    "Plain ASCII with nothing to mend, at all.",
    "\u00c9TAT, \u00c0 LA CARTE, GAR\u00c7ON, \u00c2GE",
    "CAF\u00c9\u2026 and CAF\u00c9\u00bb and MA\u00c7\u00c3 end.",
    "l\u2019\u00e9t\u00e9\u2026\u201d et voil\u00e0\u2026\u00bb fin",
    "Na\u00efve r\u00e9sum\u00e9s co\u00f6perate.",
]

# Languages that the sentences above lack; of them, words alone in an English line are tried, too.
MORE_SENTENCES = [
    "Řeka teče, věděl jsem, že šťastný člověk šel přes dům.",
    "Wiedziałem, że źdźbło, łąka, żółw i część są świętą dziewięć.",
    "Erdő, idő, nő, őszi szőlő, tűz, fűtés, gyűrű, Győr.",
    "İstanbul, Iğdır, şöförü, çağrı, güneş, ığdır, doğduğu.",
    "Rīga, Jūrmala, ēka, ģimene, ķirsis, ļoti, ņemt, šķērslis, žurnāls.",
    "Žąsis, ėjo, įžymus, šių, ūkis, vyrų, žemė, būčiau.",
    "Știința, țară, în, să, câine, ști, părinți, României.",
    "Đurđevac, čovječe, ćevapčići, džep, žena, šuma.",
    "Ľubica, dĺžka, vŕba, kôň, mäkčeň, ďaleko, päť, ťava.",
    "Škofja Loka, človek, žaba, tišina, mačka.",
    "Õhtu, sõber, jäääär, öö, üks, šokolaad.",
    "Äiti, yö, pöytä, ääni, Åbo.",
    "Ġgantija, ħobż, għajn, żmien, ċavetta.",
    "Tŷ, dŵr, môr, llŷn, gŵyl.",
    "Tiếng Việt, đường phố, người, được, những, ơn, ưu.",
    "Əlifba, şəhər, öyrənmək, böyük, ığ.",
    "Shqipëri, çfarë, një, është.",
    "Добър ден, България, щастие.",
    "Ђорђе, Њујорк, џез, љубав, ћуприја.",
    "سلام دنیا، گفتگو پارسی است.",
    "বাংলা ভাষা, தமிழ் மொழி, తెలుగు.",
    "საქართველო, მშვიდობა.",
    "Հայաստան, բարեւ.",
    "ភាសាខ្មែរ, မြန်မာ, ລາວ.",
    "Ævi, þögn, ðe, ísland, ýmis, úr, ól.",
    "Ça alors, cœur, Œuvre, août, Noël, voilà, là, où.",
    "Às vezes, àquela hora, maçã, pão, vovô, avó.",
    "Fàcil, això, pèl, òpera, coŀlegi, Català.",
    "Größe, Übermut, Öl, Ärger, Straße, ß.",
    "Señor, año, ¿qué?, ¡olé!, pingüino, Ángel, Ñandú.",
]

RULES = [
    "Tom &amp; Jerry &lt;3 &copy; &#233;t&#xE9; &hellip; &nbsp;x",
    "P&EACUTE;REZ &NTILDE; &nTILDE; BUNDESSTRA&SZLIG;E &checkmark; &AMPx; &notanentity; &amp",
    "<p>Tom &amp; Jerry</p>",
    "first &amp; line\nthen <b>markup</b> &amp; more\nlast &amp; line",
    "&#128; &#x92; &#0; &#xD800; &#1114112; &#1; &#12abc; &#; &#xFDD0;",
    "&amp;amp; twice, &amp;lt; too",
    "\ufb02u\ufb03est \ufb01ne \u0132ssel \u01c6 \u0149 \ufb05",
    "\uff2c\uff2f\uff35\uff24\u3000\uff2e\uff2f\uff29\uff33\uff25\uff33 \uff76\uff85 \uffe5100 \uff35\uff80\uff70\uff9d",
    "one\r\ntwo\rthree\u2028four\u2029five\u0085six",
    "bell\x07 null-ish\x01 del\x7f vt\x0b ff\x0c tab\t keep",
    "\x1b[36;44mblue\x1b[0m \x1b[x \x1b and \x1b[12",
    "\ufeffbom inside\ufeff \ufff9note\ufffb \ufffc \u206a",
    "e\u0301 a\u0308 o\u0302 A\u030a n\u0303 \u1100\u1161 \u212b \u2126",
    "\u02bcn \u201bx\u201f \u201alow\u201e",
    "c1 \x93quoted\x94 and \x85",
    "",
    "\n\n",
    "tabs\tand  spaces \n",
]


def garbled(text, encoding):
    def shown(byte):
        try:
            return bytes([byte]).decode(encoding)
        except UnicodeDecodeError:
            return chr(byte)
    return "".join(shown(byte) for byte in text.encode())


def words():
    found = []
    for sentence in SENTENCES + MORE_SENTENCES:
        for word in sentence.split():
            if not word.isascii() and word not in found:
                found.append(word)
    return found


def random_texts(count):
    rng = random.Random(9)
    signs = [bytes([b]).decode("sloppy-windows-1252") for b in range(0x80, 0x100)]
    others = list("abzAZ .,?!'\"109\n\t\x1f") + ["\u00a0", "\ufffd", "\x1a", "ł", "Č", "я", "α", "中", "’", "“"]
    for _ in range(count):
        text, wanted = "", rng.randint(2, 10)
        while len(text) < wanted:
            kind = rng.random()
            if kind < 0.4:
                text += rng.choice(signs)
            elif kind < 0.6:
                text += rng.choice(others)
            elif kind < 0.65:
                text += chr(rng.randrange(0x80, 0xA0))
            elif kind < 0.8:
                text += chr(rng.randrange(0xC1, 0xF5)) + rng.choice(signs[:64])
            else:
                letter = rng.choice("éàčłşÀŠœαя中’“ð😀Ãâ ")
                text += letter.encode().decode(rng.choice(["latin-1", "sloppy-windows-1252"]))
        yield text


def sign_pairs():
    signs = [chr(c) for c in range(0x9F, 0x100)] + [bytes([b]).decode("sloppy-windows-1252") for b in range(0x80, 0xA0)]
    signs = [s for s in signs if not "\x80" <= s <= "\x9e"] + list(" .aA1\t") + ["\ufffd"]
    rows = ["".join("01"[is_bad("x" + a + b + "y")] for b in signs) for a in signs]
    return {"signs": "".join(signs), "garbled": [format(int(row, 2), "x") for row in rows]}


def main():
    cases = [("clean", s) for s in SENTENCES]
    for encoding in ["windows-1252", "latin-1"]:
        cases += [("garbled", garbled(s, encoding)) for s in SENTENCES]
    cases += [("twice", garbled(garbled(s, "windows-1252"), "windows-1252")) for s in SENTENCES]
    for i, s in enumerate(SENTENCES):
        cases.append(("mixed", garbled(s, "windows-1252") + " " + SENTENCES[(i + 3) % len(SENTENCES)]))
    cases += [("rules", s) for s in RULES]
    for encoding in ["windows-1252", "latin-1"]:
        cases += [("word", f"We saw {garbled(w, encoding)} there again.") for w in words()]
    cases += [("spaced", garbled(s, "windows-1252").replace("\u00a0", " ")) for s in SENTENCES + MORE_SENTENCES]
    cases += [("clean", s) for s in MORE_SENTENCES]
    with OUT.open("w") as file:
        def write(line):
            file.write(json.dumps(line, ensure_ascii=False) + "\n")

        write({"ftfy": ftfy.__version__, "made by": "tests/golden/make_ftfy_golden.py"})
        for kind, text in cases:
            write({"kind": kind, "text": text, "fixed": ftfy.fix_text(text)})
        chardata.CHARMAP_ENCODINGS[:] = ["latin-1", "sloppy-windows-1252"]
        for text in random_texts(500):
            write({"kind": "random", "text": text, "fixed": ftfy.fix_text(text)})
        write(sign_pairs())


if __name__ == "__main__":
    main()
