-- Gives a turn back, if it has not changed hands.
-- KEYS: turn. ARGV: number.
if redis.call('HGET', KEYS[1], 'number') == ARGV[1] then redis.call('DEL', KEYS[1]) end
return true
