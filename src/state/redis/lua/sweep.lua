-- Removes a session that ended before a moment, if it still is so.
-- KEYS: session, token, all, the orders seen of it, and for each of them who saw it. ARGV: id, before.
local known = redis.call('HMGET', KEYS[1], 'ended', 'attempt')
local at = redis.call('ZSCORE', KEYS[3], ARGV[1])
if known[1] == '1' and not known[2] and at and tonumber(at) <= tonumber(ARGV[2]) then
  redis.call('DEL', KEYS[1], KEYS[2])
  for at = 4, #KEYS do redis.call('DEL', KEYS[at]) end
  redis.call('ZREM', KEYS[3], ARGV[1])
end
return true
