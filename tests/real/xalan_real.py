"""xalan: a generated document of thousands of elements, sorted, grouped and rewritten by a stylesheet."""

from harness import INPUTS, main


def work(on):
    document = on.run(["python3", INPUTS / "library_xml.py", 5000], plain=True).out
    (on.dir / "library.xml").write_bytes(document)
    on.run(["xalan", "-in", "library.xml", "-xsl", INPUTS / "catalogue.xsl", "-out", "catalogue.xml"])
    return {"catalogue": (on.dir / "catalogue.xml").read_bytes()}


main(work, ["xalan"])
