# Groups the records, sorts each group by price, and prints what is most expensive, with its tags joined.
group_by(.group)
| map({
    group: .[0].group,
    count: length,
    total: (map(.price) | add),
    tags: (map(.tags[]) | group_by(.) | map({tag: .[0], count: length}) | sort_by(-.count, .tag) | .[0:5]),
    top: (sort_by(-.price, .id) | .[0:3] | map(.name + ": " + (.note | ascii_upcase | split(" ") | reverse | join("-"))))
  })
| sort_by(-.total)
