<?xml version="1.0"?>
<!-- A report by group: items found by key, sorted, their notes taken apart word by word. -->
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
  <xsl:output method="html" indent="yes"/>
  <xsl:key name="by-group" match="item" use="@group"/>

  <xsl:template match="/store">
    <html>
      <body>
        <xsl:for-each select="item[generate-id() = generate-id(key('by-group', @group)[1])]">
          <xsl:sort select="@group"/>
          <h1><xsl:value-of select="@group"/> (<xsl:value-of select="count(key('by-group', @group))"/>)</h1>
          <xsl:for-each select="key('by-group', @group)">
            <xsl:sort select="price" data-type="number" order="descending"/>
            <h2><xsl:value-of select="translate(name, 'abcdefghijklmnopqrstuvwxyz', 'ABCDEFGHIJKLMNOPQRSTUVWXYZ')"/></h2>
            <p>
              <xsl:value-of select="format-number(price, '#,##0.00')"/>
              <xsl:for-each select="tags/tag"> [<xsl:value-of select="."/>]</xsl:for-each>
            </p>
            <ul>
              <xsl:call-template name="words"><xsl:with-param name="text" select="note"/></xsl:call-template>
            </ul>
          </xsl:for-each>
        </xsl:for-each>
      </body>
    </html>
  </xsl:template>

  <xsl:template name="words">
    <xsl:param name="text"/>
    <xsl:choose>
      <xsl:when test="contains($text, ' ')">
        <li><xsl:value-of select="substring-before($text, ' ')"/></li>
        <xsl:call-template name="words">
          <xsl:with-param name="text" select="substring-after($text, ' ')"/>
        </xsl:call-template>
      </xsl:when>
      <xsl:otherwise><li><xsl:value-of select="$text"/></li></xsl:otherwise>
    </xsl:choose>
  </xsl:template>
</xsl:stylesheet>
