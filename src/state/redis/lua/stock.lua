-- Shelves: the steps of the room `stock`, in the same order and with the same outcome (held against it by tests).
-- In front: FRESH, MOST_WAITING, REMEMBERED, OF_CALLER.
-- A `step` comes as JSON: ids (one for each shelf key, in order), session, owner, lease, and what it is about.

local function load_shelves(keys, ids)
  local shelves = {}
  for at, id in ipairs(ids) do
    local text = redis.call('GET', keys[at])
    local shelf = text and cjson.decode(text) or {}
    shelf.members = shelf.members or {}
    shelves[id] = shelf
  end
  return shelves
end

local function store_shelves(index, keys, ids, shelves)
  for at, id in ipairs(ids) do
    local shelf = shelves[id]
    if next(shelf.members) == nil and not shelf.upper and not shelf.lower then
      redis.call('DEL', keys[at])
      redis.call('SREM', index, id)
    else
      redis.call('SET', keys[at], cjson.encode(shelf))
      redis.call('SADD', index, id)
    end
  end
end

local function is_out_of(member, count)
  return member.opened and member.opened > count.to
end

local function is_in(member, count)
  return member.closed and member.closed <= count.from
end

-- Whether a count may be without its units already, because the shop took off those of its unpaid order.
local function may_be_off(member, count)
  return count.takes_off_pending and member.unpaid_from and member.unpaid_from <= count.to
    and (not member.unpaid_to or member.unpaid_to > count.from)
end

local function is_of_caller(stock)
  return string.sub(stock, 1, #OF_CALLER) == OF_CALLER
end

-- What a count is without because the shop keeps it for the session itself: that is its own to have.
local function own_off(shelf, count, session)
  local own = shelf.members[session]
  return own and may_be_off(own, count) and own.quantity or 0
end

local function most(shelf, count, session)
  local left = count.number + own_off(shelf, count, session)
  for of, member in pairs(shelf.members) do
    if of ~= session then
      local stage = member.stage
      local counts = stage == 'soft' or stage == 'admitted' or stage == 'kept' or is_out_of(member, count)
      if counts and not may_be_off(member, count) then
        left = left - member.quantity
      end
    end
  end
  return left
end

local function least(shelf, count, session)
  local left = count.number
  for of, member in pairs(shelf.members) do
    if of ~= session then
      local known = false
      if member.stage == 'soft' then
        known = count.takes_off_pending and member.shop_keeps and member.shop_keeps <= count.from
      elseif member.stage == 'sold' then
        known = is_in(member, count)
      end
      if not known then left = left - member.quantity end
    end
  end
  return left
end

local function is_fresh(count)
  return count and now - count.at <= FRESH
end

local function is_covered(shelf, session, quantity)
  return is_fresh(shelf.lower) and least(shelf, shelf.lower, session) >= quantity
end

local function held_for(shelf, session)
  local soonest
  for of, member in pairs(shelf.members) do
    if of ~= session then
      local wait
      if member.stage == 'soft' and not member.ticket then
        wait = math.floor((member.at - now + 999) / 1000)
      elseif member.stage == 'kept' then
        wait = 60
      elseif member.stage ~= 'sold' then
        wait = 5
      end
      if wait and (not soonest or wait < soonest) then soonest = wait end
    end
  end
  return math.max(soonest or 1, 1)
end

-- Why a session cannot have so many: nil, or a reason and its number.
local function shortage(shelf, session, quantity)
  local count = shelf.upper
  if not count or most(shelf, count, session) >= quantity then return nil end
  local left = count.number + own_off(shelf, count, session)
  for of, member in pairs(shelf.members) do
    if of ~= session then
      if may_be_off(member, count) then
        -- Off the count, but perhaps only held: what is not sold may come back.
        if member.stage ~= 'sold' then left = left + member.quantity end
      elseif member.stage == 'sold' and is_out_of(member, count) then
        left = left - member.quantity
      end
    end
  end
  if left <= 0 then return 'sold_out', 0 end
  if left < quantity then return 'left', left end
  return 'held', held_for(shelf, session)
end

local function any_other(shelf, session, stages)
  for of, member in pairs(shelf.members) do
    if of ~= session and stages[member.stage] then return true end
  end
  return false
end
local BUSY, RUNNING = { admitted = true, open = true }, { open = true }

local function ahead(shelf, session, ticket)
  local count = 0
  for of, member in pairs(shelf.members) do
    local waits = member.stage == 'soft' and member.ticket
    if of ~= session and waits and (not ticket or member.ticket < ticket) then count = count + 1 end
  end
  return count
end

local function prune(shelf, owners, lease)
  local kept = {}
  for of, member in pairs(shelf.members) do
    local gone = member.owner and not lives(owners, member.owner, lease)
    local stays = true
    local holds = member.stage == 'soft' or member.stage == 'admitted'
    if holds and gone then
      -- What it was about to do is void; the session still holds its units, and may come back.
      member.stage, member.ticket, member.owner = 'soft', nil, nil
    end
    if holds then
      stays = member.at > now
    elseif member.stage == 'sold' then
      stays = now - member.at <= REMEMBERED
        or (shelf.upper and is_out_of(member, shelf.upper))
        or (is_fresh(shelf.lower) and not is_in(member, shelf.lower))
    end
    if stays then kept[of] = member end
  end
  shelf.members = kept
end

local function raises_rightly(shelf, old, new)
  if new.from < old.from then return false end
  local unsure = false
  for _, member in pairs(shelf.members) do
    if member.stage == 'open' or (member.stage == 'sold' and not is_in(member, new)) then unsure = true end
  end
  return not unsure or most(shelf, new, '') < most(shelf, old, '') or new.at - old.at > 10 * REMEMBERED
end

local function explains(shelf, old, number)
  local ours = 0
  for _, member in pairs(shelf.members) do
    local stage = member.stage
    if stage == 'open' or stage == 'kept' or (stage == 'sold' and not is_in(member, old))
      or (stage == 'soft' and member.shop_keeps) then
      ours = ours + member.quantity
    end
  end
  return number >= old.number - ours
end

local function observe(shelves, readings, sequence, owners, lease)
  for _, reading in ipairs(readings) do
    local shelf = shelves[reading.stock]
    prune(shelf, owners, lease)
    local function count(number, takes_off_pending)
      return { number = number, source = reading.source, from = reading.from, to = sequence, at = now,
        takes_off_pending = takes_off_pending }
    end
    if reading.upper then
      local new = count(reading.upper, reading.upper_is_free)
      if not shelf.upper or raises_rightly(shelf, shelf.upper, new) then shelf.upper = new end
    elseif shelf.upper and shelf.upper.source == reading.source then
      shelf.upper = nil
    end
    if reading.lower then
      local new = count(reading.lower, reading.takes_off_pending)
      local old = shelf.lower
      if not (is_fresh(old) and explains(shelf, old, reading.lower)) or least(shelf, old, '') < least(shelf, new, '') then
        shelf.lower = new
      end
    end
  end
end

-- Gives back what a session holds, unless its POST may run or it has bought.
local function give_back(shelves, session, units)
  for _, wanted in ipairs(units) do
    local members = shelves[wanted.stock].members
    local member = members[session]
    if member and member.stage ~= 'open' and member.stage ~= 'sold' then members[session] = nil end
  end
end

-- Opens the attempt, if it may; if not, nothing of this is stored.
local function pin(shelves, step, sequence_key, owners)
  observe(shelves, step.readings, tonumber(redis.call('GET', sequence_key) or '0'), owners, step.lease)
  for _, wanted in ipairs(step.units) do prune(shelves[wanted.stock], owners, step.lease) end
  local session, admitted = step.session, true
  for _, wanted in ipairs(step.units) do
    local shelf = shelves[wanted.stock]
    local member = shelf.members[session]
    local own = member and member.stage == 'admitted' and member.owner == step.owner
      and member.quantity == wanted.quantity
    local free = is_of_caller(wanted.stock) or is_covered(shelf, session, wanted.quantity)
      or not any_other(shelf, session, RUNNING)
    if not own or not free then
      admitted = false
    end
  end
  if not admitted then return false end
  local opened = redis.call('INCR', sequence_key)
  for _, wanted in ipairs(step.units) do
    local member = shelves[wanted.stock].members[session]
    member.stage, member.opened, member.closed, member.owner, member.ticket = 'open', opened, nil, nil, nil
    member.unpaid_from, member.unpaid_to = member.unpaid_from or opened, nil
  end
  return true
end

-- An open attempt is closed, as `step.how` says.
local function close(shelves, step, sequence_key, owners)
  local how, session, closed = step.how, step.session, nil
  for _, wanted in ipairs(step.units) do
    local shelf = shelves[wanted.stock]
    local known = shelf.members[session]
    local stage = known and known.stage
    local concerned = stage == 'open' or stage == 'kept'
    if how == 'sold' then concerned = stage ~= 'sold' elseif how == 'kept' then concerned = stage == 'open' end
    if concerned then
      closed = closed or redis.call('INCR', sequence_key)
      local member = { quantity = known and known.quantity or wanted.quantity, stage = 'soft', at = now,
        opened = known and known.opened, unpaid_from = known and known.unpaid_from }
      if how == 'sold' then
        member.stage, member.closed = 'sold', closed
      elseif how == 'kept' then
        member.stage = 'kept'
      else
        member.opened = nil
        if how == 'declined' then
          member.at = now + step.hold_ms
          if step.shop_keeps then member.shop_keeps = closed else member.unpaid_to = closed end
        end
      end
      shelf.members[session] = member
    end
    prune(shelf, owners, step.lease)
  end
end
