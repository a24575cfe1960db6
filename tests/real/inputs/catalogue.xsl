<?xml version="1.0"?>
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
