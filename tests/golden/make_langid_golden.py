"""Make tests/golden/corpus/langid.jsonl: what pycld2 detects in texts of many languages, long, short and mixed.

    $(scripts/oracle-env | tail -n 1) -m pip install pycld2
    $(scripts/oracle-env | tail -n 1) tests/golden/make_langid_golden.py

A line is {"text": ..., "code": ..., "percent": ..., "reliable": ...}; the first has the version.
"""

import importlib.metadata
import json
from pathlib import Path

import pycld2
from make_ftfy_golden import SENTENCES

OUT = Path(__file__).parent / "corpus" / "langid.jsonl"

LONGER = [
    "The river had risen in the night, and by the time we came down to the landing the ferry was tied up on the far "
    "side. Nobody seemed to mind very much. People sat on their bags and talked about the price of corn.",
    "Der Fluss war in der Nacht gestiegen, und als wir an die Anlegestelle kamen, lag die F\u00e4hre am anderen Ufer. "
    "Niemand schien sich daran zu st\u00f6ren. Die Leute sa\u00dfen auf ihren Taschen und redeten \u00fcber das Wetter.",
    "La rivi\u00e8re avait mont\u00e9 pendant la nuit, et quand nous sommes arriv\u00e9s au d\u00e9barcad\u00e8re, le bac \u00e9tait de l'autre "
    "c\u00f4t\u00e9. Personne ne semblait s'en soucier. Les gens parlaient du prix du bl\u00e9.",
    "El r\u00edo hab\u00eda crecido durante la noche y, cuando llegamos al embarcadero, la barca estaba en la otra orilla. "
    "A nadie parec\u00eda importarle. La gente hablaba del precio del ma\u00edz.",
    "De rivier was 's nachts gestegen en toen we bij de steiger kwamen lag de pont aan de overkant. Niemand leek het "
    "erg te vinden. De mensen zaten op hun tassen en praatten over het weer.",
    "\u0420\u0435\u043a\u0430 \u043f\u043e\u0434\u043d\u044f\u043b\u0430\u0441\u044c \u043d\u043e\u0447\u044c\u044e, \u0438 \u043a\u043e\u0433\u0434\u0430 \u043c\u044b \u043f\u0440\u0438\u0448\u043b\u0438 \u043d\u0430 \u043f\u0440\u0438\u0441\u0442\u0430\u043d\u044c, \u043f\u0430\u0440\u043e\u043c \u0441\u0442\u043e\u044f\u043b \u043d\u0430 \u0434\u0440\u0443\u0433\u043e\u043c \u0431\u0435\u0440\u0435\u0433\u0443.",
]


def main():
    texts = SENTENCES + LONGER + [" ".join(LONGER), LONGER[0] + " " + LONGER[1], "", "12345 67890", "lol", "a b c d e"]
    with OUT.open("w") as file:
        file.write(json.dumps({"pycld2": importlib.metadata.version("pycld2")}) + "\n")
        for text in texts:
            reliable, _, details = pycld2.detect(text)
            file.write(json.dumps({"text": text, "code": details[0][1], "percent": details[0][2],
                                   "reliable": bool(reliable)}) + "\n")


if __name__ == "__main__":
    main()
