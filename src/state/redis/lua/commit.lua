-- One atomic step: session, end of the claim, and the operation by which a lost reply is read back. Everything is
-- checked before anything is written.
-- KEYS: operation, session, token, open, due, all, claim, epoch, replid, quarantine, review, owners, sequence and index
-- of the shelves; then for each order that was seen: the session it was seen with, the orders seen of that session;
-- then the shelves.
local operation, session, token, open, due, all = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local claim, epoch, replid, quarantine, review = KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11]
local owners, sequence_key, index = KEYS[12], KEYS[13], KEYS[14]
-- ARGV: how long operations are kept; owner; quarantine ms;
local operation_ms, owner, quarantine_ms = ARGV[1], ARGV[2], ARGV[3]
--   what the session's writer expects (none, new, version, attempt) and which;
local expect, expected = ARGV[4], ARGV[5]
--   the session: id, body, open attempt or '', when it is due, whether nothing is to be done any more, last change;
local id, body, attempt, expires, ended, updated = ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10], ARGV[11]
--   the claim: how it ends, fence or '' (by scope), answer, how long that is kept, the attempt it belongs to;
local finish, fence, answer, keep_ms, attached = ARGV[12], ARGV[13], ARGV[14], ARGV[15], ARGV[16]
--   whether a person has to look at the session; how many orders were seen; what happens to the stock as JSON, or '';
local wants_review, orders, stock = ARGV[17], tonumber(ARGV[18]), ARGV[19]
--   then for each order: its id, session, whether adopted, what was seen.
local ORDER_KEYS, ORDER_ARGUMENTS = 15, 20

local taken = redis.call('GET', operation)
if taken then return {'ok', taken} end

if finish == 'attach' then
  check_master(replid, epoch, quarantine, quarantine_ms)
  local till = redis.call('GET', quarantine)
  if till and tonumber(till) > now then
    return {'quarantine', tostring(math.ceil((tonumber(till) - now) / 1000))}
  end
end

local version = 0
if expect ~= 'none' then
  local known = redis.call('HMGET', session, 'version', 'attempt')
  if expect == 'new' then
    if known[1] then return {'moved'} end
  elseif not known[1] then
    return {'moved'}
  elseif expect == 'version' then
    if known[1] ~= expected then return {'moved'} end
  elseif known[2] ~= expected then
    return {'attempt_closed'}
  end
  version = (tonumber(known[1] or '0')) + 1
end

for at = 0, orders - 1 do
  local seen, seen_of = KEYS[ORDER_KEYS + 2 * at], KEYS[ORDER_KEYS + 1 + 2 * at]
  local first = ORDER_ARGUMENTS + 4 * at
  local order, of, adopted = ARGV[first], ARGV[first + 1], ARGV[first + 2]
  if adopted == '1' then
    local by, own = redis.call('GET', seen), redis.call('HGET', seen_of, 'adopted')
    if (by and by ~= of) or (own and own ~= order) then return {'order_taken', order} end
  end
end

local held = false
if finish ~= 'keep' then
  local known = redis.call('HMGET', claim, 'fence', 'attempt', 'answer')
  held = known[1] and not known[3] and (fence == '' or known[1] == fence)
  if finish == 'release' and fence ~= '' and known[2] then held = false end
  -- The claim of a settled attempt may be gone; the session guards the order.
  if not held and fence ~= '' then return {'claim_lost'} end
end

if stock ~= '' then
  local step = cjson.decode(stock)
  local keys = { unpack(KEYS, ORDER_KEYS + 2 * orders) }
  local shelves = load_shelves(keys, step.ids)
  if step.turn == 'pin' then
    if not pin(shelves, step, sequence_key, owners) then return {'not_admitted'} end
  elseif step.turn == 'close' then
    close(shelves, step, sequence_key, owners)
  else
    give_back(shelves, step.session, step.units)
  end
  store_shelves(index, keys, step.ids, shelves)
end

if held then
  if finish == 'finish' then
    redis.call('HSET', claim, 'answer', answer)
    redis.call('PEXPIRE', claim, keep_ms)
  elseif finish == 'release' then
    redis.call('DEL', claim)
  else
    redis.call('HSET', claim, 'attempt', attached)
  end
end

if expect ~= 'none' then
  local of_epoch = redis.call('GET', epoch) or '0'
  redis.call('HSET', session, 'version', version, 'body', body, 'ended', ended, 'epoch', of_epoch)
  redis.call('HDEL', session, 'left')
  redis.call('SET', token, id)
  redis.call('ZADD', all, updated, id)
  if attempt == '' then
    redis.call('HDEL', session, 'attempt', 'owner')
    redis.call('ZREM', open, id)
  else
    redis.call('HSET', session, 'attempt', attempt)
    if finish == 'attach' then redis.call('HSET', session, 'owner', owner) end
    redis.call('ZADD', open, now, id)
  end
  if wants_review == '1' then
    redis.call('ZADD', review, updated, id)
  else
    redis.call('ZREM', review, id)
  end
  if ended == '1' or attempt ~= '' or wants_review == '1' then
    redis.call('ZREM', due, id)
  else
    redis.call('ZADD', due, expires, id)
  end
end
for at = 0, orders - 1 do
  local seen, seen_of = KEYS[ORDER_KEYS + 2 * at], KEYS[ORDER_KEYS + 1 + 2 * at]
  local first = ORDER_ARGUMENTS + 4 * at
  local order, of, adopted, body = ARGV[first], ARGV[first + 1], ARGV[first + 2], ARGV[first + 3]
  -- An order that another session has seen before stays that one's.
  redis.call('SETNX', seen, of)
  if redis.call('GET', seen) == of then
    redis.call('HSETNX', seen_of, 'first:' .. order, body)
    redis.call('HSET', seen_of, 'last:' .. order, body)
    if adopted == '1' then redis.call('HSET', seen_of, 'adopted', order) end
  end
end
redis.call('SET', operation, version, 'PX', operation_ms)
return {'ok', tostring(version)}
