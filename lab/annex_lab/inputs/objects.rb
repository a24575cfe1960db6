# Objects, arrays, hashes and strings: orders are made, grouped, rendered and parsed back.
Order = Struct.new(:id, :name, :lines, :total)

count = Integer(ARGV[0])
state = 31
random = lambda do |n|
  state = (state * 1103515245 + 12345) % 2147483648
  state % n
end

sum = 0
2.times do
  orders = Array.new(count) do |i|
    lines = Array.new(random.call(5) + 1) { |j| { "article" => "a#{random.call(900)}", "count" => j + 1 } }
    Order.new(i, "customer number #{random.call(count / 5 + 1)}", lines, lines.sum { |line| line["count"] })
  end
  by_name = orders.group_by(&:name)
  text = by_name.sort_by { |name, list| [-list.size, name] }.map do |name, list|
    "#{name}: " + list.flat_map { |order| order.lines.map { |line| line["article"] } }.join(", ")
  end.join("\n")
  sum += text.lines.map { |line| line.split(": ", 2)[1].split(", ").tally.size }.sum
  sum += orders.map(&:total).sum + text.gsub(/a(\d)/) { "b#{$1}" }.size
end
puts sum
