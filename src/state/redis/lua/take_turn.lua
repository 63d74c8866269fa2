-- Takes a session's turn among processes, unless another living process has it.
-- KEYS: turn, owners, session, turns, epoch. ARGV: owner, lease ms, how long a forgotten turn is kept ms.
local epoch = redis.call('GET', KEYS[5]) or '0'
local known = redis.call('HMGET', KEYS[1], 'owner', 'epoch')
local held = known[1]
if held and held ~= ARGV[1] then
  -- One of an older epoch may have been given back: that may be among the writes that are lost.
  if (known[2] or '0') == epoch and lives(KEYS[2], held, ARGV[2]) then return false end
  leave_cart(KEYS[3])
end
local number = redis.call('INCR', KEYS[4])
redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'number', number, 'epoch', epoch)
-- Nothing rests on this: it clears away what nobody asks for any more.
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return number
