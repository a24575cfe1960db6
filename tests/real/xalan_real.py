"""xalan: a generated document of thousands of elements, sorted, grouped and rewritten by a stylesheet."""

from harness import main

STYLE = r"""<?xml version="1.0"?>
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
<xsl:output method="xml" indent="yes" encoding="UTF-8"/>
<xsl:key name="by-author" match="book" use="author"/>
<xsl:template name="stars"><xsl:param name="n"/>
  <xsl:if test="$n &gt; 0">*<xsl:call-template name="stars"><xsl:with-param name="n" select="$n - 1"/></xsl:call-template></xsl:if>
</xsl:template>
<xsl:template match="/library">
  <catalogue books="{count(book)}" pages="{sum(book/@pages)}">
    <xsl:for-each select="book[generate-id() = generate-id(key('by-author', author)[1])]">
      <xsl:sort select="author"/>
      <author name="{author}" count="{count(key('by-author', author))}">
        <xsl:for-each select="key('by-author', author)">
          <xsl:sort select="@pages" data-type="number" order="descending"/><xsl:sort select="title"/>
          <xsl:apply-templates select="."/>
        </xsl:for-each>
      </author>
    </xsl:for-each>
  </catalogue>
</xsl:template>
<xsl:template match="book">
  <title pages="{@pages}"><xsl:value-of select="translate(normalize-space(title), 'abcdefgh', 'ABCDEFGH')"/>
    <rating><xsl:call-template name="stars"><xsl:with-param name="n" select="@pages mod 6"/></xsl:call-template></rating>
    <xsl:for-each select="note"><n><xsl:value-of select="concat(substring-before(., ' '), '-', string-length(.))"/></n></xsl:for-each>
  </title>
</xsl:template>
</xsl:stylesheet>
"""


def document(books):
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<library>\n'
    for n in range(books):
        notes = "".join(f"<note>word{n * i % 77} {'text ' * (n * i % 13)}</note>" for i in range(n % 5))
        yield (f'<book pages="{n * 7919 % 1009}"><title>The  title of   book {n * 31 % 997} — {n}</title>'
               f"<author>Author {n * 104729 % 173}</author>{notes}</book>\n")
    yield "</library>\n"


def work(on):
    (on.dir / "style.xsl").write_text(STYLE)
    (on.dir / "library.xml").write_text("".join(document(5000)), encoding="utf-8")
    on.run(["xalan", "-in", "library.xml", "-xsl", "style.xsl", "-out", "catalogue.xml"])
    return {"catalogue": (on.dir / "catalogue.xml").read_bytes()}


main(work, ["xalan"])
