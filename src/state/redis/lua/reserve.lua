-- Holds units for a session, all or none, and lets it through the gate if it wants.
-- KEYS: owners, sequence, index of shelves, then the shelves. ARGV: the step as JSON.
local owners, sequence_key, index = KEYS[1], KEYS[2], KEYS[3]
local step = cjson.decode(ARGV[1])
local session, units = step.session, step.units
local keys = { unpack(KEYS, 4) }
local shelves = load_shelves(keys, step.ids)

local function refuse(answer)
  give_back(shelves, session, units)
  store_shelves(index, keys, step.ids, shelves)
  return answer
end

-- While an attempt of its own is open, it waits and nothing changes.
local PAST = { open = true, kept = true, sold = true }
for _, wanted in ipairs(units) do
  local member = shelves[wanted.stock].members[session]
  if member and PAST[member.stage] then return { 'waiting', '0' } end
end
for _, wanted in ipairs(units) do
  local shelf = shelves[wanted.stock]
  prune(shelf, owners, step.lease)
  local reason, number = shortage(shelf, session, wanted.quantity)
  if reason then return refuse({ reason, wanted.stock, tostring(number) }) end
end
-- Who is through the gate already comes before all that wait.
local FIRST = 0
local ticket, through = nil, #units > 0
for _, wanted in ipairs(units) do
  local member = shelves[wanted.stock].members[session]
  ticket = ticket or (member and member.ticket)
  through = through and member and member.stage == 'admitted'
end
if not ticket and through then ticket = FIRST end
local enters, longest = step.enter, 0
for _, wanted in ipairs(units) do
  local shelf = shelves[wanted.stock]
  -- What a caller may hold is a limit, not goods that orders race for.
  if not is_of_caller(wanted.stock) then
    local before = ahead(shelf, session, ticket)
    longest = math.max(longest, before)
    if before > 0 or not (is_covered(shelf, session, wanted.quantity) or not any_other(shelf, session, BUSY)) then
      enters = false
    end
  end
end
if step.enter and not enters and not ticket and longest >= MOST_WAITING then return refuse({ 'full' }) end
if not step.enter or ticket == FIRST then ticket = nil end
if step.enter and not enters then ticket = ticket or redis.call('INCR', sequence_key) end
for _, wanted in ipairs(units) do
  local members = shelves[wanted.stock].members
  local known = members[session]
  local till = now + step.hold_ms
  if known and known.stage == 'soft' and known.at > till then till = known.at end
  members[session] = {
    quantity = wanted.quantity, stage = enters and 'admitted' or 'soft', at = till,
    owner = step.enter and step.owner or nil, ticket = ticket, shop_keeps = known and known.shop_keeps,
    unpaid_from = known and known.unpaid_from, unpaid_to = known and known.unpaid_to,
  }
end
store_shelves(index, keys, step.ids, shelves)
if enters or not step.enter then return { 'admitted', redis.call('GET', sequence_key) or '0' } end
return { 'waiting', tostring(longest) }
