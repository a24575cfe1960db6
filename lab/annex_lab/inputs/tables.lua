-- Tables, closures and strings: objects in a queue, memoized strings, a sort, a tree.
local count = tonumber(arg[1])
local state, total = 99, 0
local function random(n)
  state = (state * 1103515245 + 12345) % 2147483648
  return state % n
end

local function tree(depth)
  if depth == 0 then return {value = 1} end
  return {left = tree(depth - 1), right = tree(depth - 1)}
end
local function weigh(node) return node.value or weigh(node.left) + weigh(node.right) end

for round = 1, 3 do
  local objects, names = {}, {}
  for i = 1, count do
    local name = "object " .. random(count // 3 + 1)
    local object = {id = i, name = name, values = {random(10), random(10), i}}
    object.get = function() return object.values[1] + round end
    objects[i] = object
    names[name] = (names[name] or 0) + 1
  end
  table.sort(objects, function(a, b) return a.name < b.name or (a.name == b.name and a.id < b.id) end)
  local parts = {}
  for i, object in ipairs(objects) do
    total = total + object.get()
    if i % 5 == 0 then parts[#parts + 1] = string.upper(object.name) .. ":" .. i end
  end
  total = total + #table.concat(parts, ";")
  for _ in pairs(names) do total = total + 1 end
  total = total + weigh(tree(14))
end
print(total)
