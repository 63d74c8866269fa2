-- Claims a key, or says what is known of it.
-- KEYS: claim, owners, fences, session, epoch. ARGV: fingerprint, owner, lease ms, call, has session.
local claim, owners, fences, session = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local epoch = redis.call('GET', KEYS[5]) or '0'
local fingerprint, owner, lease, call, has_session = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local known = redis.call('HMGET', claim, 'fingerprint', 'attempt', 'answer', 'owner', 'call', 'fence', 'epoch')
if known[1] then
  -- The reply to this very call was lost: it is given again.
  if known[5] == call and not known[3] then return {'run', known[6]} end
  if known[1] ~= fingerprint then return {'conflict'} end
  if known[3] then return {'replay', known[3]} end
  if known[2] then return {'placing'} end
  -- One of an older epoch may be long over: its end may be among the writes that are lost.
  local present = (known[7] or '0') == epoch
  if present and (known[4] == owner or lives(owners, known[4], lease)) then return {'in_flight'} end
  if has_session == '1' then leave_cart(session) end
end
local fence = redis.call('INCR', fences)
redis.call('DEL', claim)
redis.call('HSET', claim, 'fingerprint', fingerprint, 'owner', owner, 'call', call, 'fence', fence, 'epoch', epoch)
return {'run', tostring(fence)}
