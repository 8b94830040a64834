import { createHash } from "node:crypto";

/*
 * All keys of a run, and of the indexes that list it, begin with one hash tag, `{waymark:0}` for example,
 * which is the only key passed to a script. They are therefore in one slot of a cluster, and a script
 * changes a run and its index entries atomically. A single server has one tag; a cluster has several, a
 * run always has the same one, and a listing merges the results of all tags.
 *
 *   TAG:run:RUN            hash: the run's head, its claim, and its records:
 *                            SEQUENCE → "BASE BYTES ID\nHEADER", cSEQUENCE → the SHA-256 and the content;
 *                            records that were set aside are under -SEQUENCE and c-SEQUENCE
 *   TAG:checkpoint:ID      string: the run that has this checkpoint
 *   TAG:all                set of runs
 *   TAG:runs:STATUS:GRAPH  sorted set of runs by the time of their last save: an index
 *   TAG:indexes            set of the indexes that are not empty: "STATUS:GRAPH"
 *   TAG:expiring           sorted set of finished runs by expiry time
 *   TAG:graphs             hash: fingerprint → topology
 *
 * When a run expires, so do its keys. Its index entries are skipped from then on and removed by a later
 * save.
 */

/** A script, and the hash to call it by. */
export interface Script {
  readonly text: string;
  readonly sha1: string;
}

const KEYS = `
local tag = KEYS[1]
local function hashOf(runId) return tag .. ':run:' .. runId end
local function idKey(entry) return tag .. ':checkpoint:' .. (string.match(entry, '^%d+ %d+ (.-)\\n') or '') end
local function num(n) return string.format('%.0f', n) end
`;

const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
`;

/** The sequences of a run's records; negative for those that were set aside. */
const SEQUENCES = `
local function sequences(hash)
  local found = {}
  for _, field in ipairs(redis.call('HKEYS', hash)) do found[#found + 1] = tonumber(field) end
  return found
end
`;

/** Commands on every key of a run, and on its index entry. */
const OWN_KEYS = `${SEQUENCES}
local function each(hash, command, ...)
  for _, n in ipairs(sequences(hash)) do redis.call(command, idKey(redis.call('HGET', hash, num(n))), ...) end
  redis.call(command, hash, ...)
end
local function persist(hash) if redis.call('PTTL', hash) >= 0 then each(hash, 'PERSIST') end end
local function unlist(runId, index)
  redis.call('ZREM', tag .. ':runs:' .. index, runId)
  if redis.call('EXISTS', tag .. ':runs:' .. index) == 0 then redis.call('SREM', tag .. ':indexes', index) end
end
`;

const EXPIRE = `
local function expire(runId, ttl, index)
  each(hashOf(runId), 'PEXPIRE', ttl)
  redis.call('ZADD', tag .. ':expiring', num(now + ttl), cjson.encode({runId, index}))
end
`;

/** A run as an entry of a listing. */
const LISTED = `
local function listed(runId, score)
  local hash = hashOf(runId)
  local run = redis.call('HMGET', hash, 'sequence', 'index')
  local entry = redis.call('HGET', hash, run[1]) or redis.call('HGET', hash, '-' .. run[1]) or ''
  return {runId, score, run[1], run[2], entry}
end
`;

const texts = {
  /**
   * The fence and the write, for any number of saves of twelve arguments each. Returns for each the id of the
   * run's first checkpoint or, if nothing was written, the run's head and claim.
   */
  save: `${KEYS}${NOW}${OWN_KEYS}${EXPIRE}
local function move(runId, hash, from, to)
  if from then unlist(runId, from) else redis.call('SADD', tag .. ':all', runId) end
  redis.call('SADD', tag .. ':indexes', to)
  redis.call('HSET', hash, 'index', to)
  redis.call('HDEL', hash, 'ttl')
  persist(hash)
end
local function sweep()
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', tag .. ':expiring', '-inf', num(now), 'LIMIT', 0, 100)) do
    local runId, index = unpack(cjson.decode(member))
    redis.call('ZREM', tag .. ':expiring', member)
    if redis.call('EXISTS', hashOf(runId)) == 0 then
      redis.call('SREM', tag .. ':all', runId)
      unlist(runId, index)
    end
  end
end
local function save(runId, after, afterId, epoch, lease, sequence, id, index, savedAt, entry, content, ttl)
  local hash = hashOf(runId)
  local run = redis.call('HMGET', hash, 'sequence', 'id', 'epoch', 'index', 'born', 'until')
  if (run[1] or '0') ~= after or (afterId ~= '' and (run[2] or '""') ~= afterId) or (epoch ~= '' and run[3] ~= epoch) then
    return {run[1] or '0', run[2] or '""', run[3] or '', redis.call('HGET', hash, 'owner') or ''}
  end
  local fields = {'sequence', sequence, 'id', id, sequence, entry, 'c' .. sequence, content}
  local function set(name, value) fields[#fields + 1] = name; fields[#fields + 1] = value end
  if not run[5] then set('born', id) end
  if epoch ~= '' and run[6] then set('until', num(now + lease)) end
  if run[4] ~= index then move(runId, hash, run[4], index) end
  redis.call('HSET', hash, unpack(fields))
  redis.call('ZADD', tag .. ':runs:' .. index, savedAt, runId)
  redis.call('SET', tag .. ':checkpoint:' .. id, runId)
  if ttl ~= '' then
    redis.call('HSET', hash, 'ttl', ttl)
    expire(runId, ttl, index)
    sweep()
  end
  return run[5] or id
end
local replies = {}
for at = 1, #ARGV, 12 do replies[#replies + 1] = save(unpack(ARGV, at, at + 11)) end
return replies`,

  /**
   * The newest record below a sequence, or exactly that one, preceded by all records that it builds on; and
   * the run's head.
   */
  chain: `${KEYS}${SEQUENCES}
local hash, bound, isExact = hashOf(ARGV[1]), tonumber(ARGV[2]), ARGV[3] == '1'
local head = redis.call('HMGET', hash, 'sequence', 'id')
if not head[1] then return false end
local function has(n) return redis.call('HEXISTS', hash, num(n)) == 1 end
local at
if isExact then
  if has(bound) then at = bound end
elseif tonumber(head[1]) < bound and has(tonumber(head[1])) then
  at = tonumber(head[1])
else
  for _, n in ipairs(sequences(hash)) do
    if n > 0 and n < bound and n > (at or 0) then at = n end
  end
end
local found = {head[1], head[2]}
if not at then return found end
local base = tonumber(string.match(redis.call('HGET', hash, num(at)), '^(%d+) ')) or at
for n = base, at do
  local record = redis.call('HMGET', hash, num(n), 'c' .. num(n))
  if record[1] then
    found[#found + 1] = num(n)
    found[#found + 1] = record[1]
    found[#found + 1] = record[2] or ''
  end
end
return found`,

  /** The records between two sequences, or only their headers. */
  records: `${KEYS}${SEQUENCES}
local hash, from, to, isWhole, found = hashOf(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == '1', {}
for _, n in ipairs(sequences(hash)) do
  if n >= from and n <= to then
    found[#found + 1] = num(n)
    found[#found + 1] = redis.call('HGET', hash, num(n))
    found[#found + 1] = isWhole and redis.call('HGET', hash, 'c' .. num(n)) or ''
  end
end
return found`,

  /** What distinguishes a run from a later one with its id, its sequence, and who has claimed it. */
  look: `${KEYS}${NOW}
local run = redis.call('HMGET', hashOf(ARGV[1]), 'born', 'sequence', 'until', 'owner')
return {run[1] or '', run[2] or '', run[3] and tonumber(run[3]) > now and run[4] or ''}`,

  setAside: `${KEYS}
local runId, born, n = unpack(ARGV)
local hash = hashOf(runId)
local run = redis.call('HMGET', hash, 'born', n, 'c' .. n)
if run[1] ~= born or not run[2] then return 0 end
redis.call('HSET', hash, '-' .. n, run[2], 'c-' .. n, run[3] or '')
redis.call('HDEL', hash, n, 'c' .. n)
redis.call('DEL', idKey(run[2]))
return 1`,

  discard: `${KEYS}
local hash = hashOf(ARGV[1])
if redis.call('HGET', hash, 'born') ~= ARGV[2] then return 0 end
local fields, ids = {}, {}
for i, entry in ipairs(redis.call('HMGET', hash, unpack(ARGV, 3))) do
  local n = ARGV[i + 2]
  if entry then ids[#ids + 1] = idKey(entry) end
  fields[2 * i - 1], fields[2 * i] = n, 'c' .. n
end
redis.call('HDEL', hash, unpack(fields))
if #ids > 0 then redis.call('DEL', unpack(ids)) end
return 1`,

  /** Removes a run, but not the claim on it. Returns the claim's owner if the caller has lost the claim. */
  remove: `${KEYS}${NOW}${OWN_KEYS}
local runId, born, sequence, unclaimed, epoch = unpack(ARGV)
local hash = hashOf(runId)
local run = redis.call('HMGET', hash, 'born', 'sequence', 'until', 'epoch', 'owner', 'index')
if run[1] ~= born or (sequence ~= '' and run[2] ~= sequence) then return 0 end
local left = (tonumber(run[3] or '') or 0) - now
if unclaimed == '1' and left > 0 then return 0 end
if epoch ~= '' and run[4] ~= epoch then return run[5] or '' end
each(hash, 'UNLINK')
if left > 0 then
  redis.call('HSET', hash, 'until', run[3], 'epoch', run[4], 'owner', run[5])
  redis.call('PEXPIRE', hash, num(left))
end
redis.call('SREM', tag .. ':all', runId)
unlist(runId, run[6])
return 1`,

  /** An epoch is at least the server's time, so that none is repeated, whatever the server has lost or removed. */
  claim: `${KEYS}${NOW}${OWN_KEYS}
local runId, owner, ttl = unpack(ARGV)
local hash = hashOf(runId)
local run = redis.call('HMGET', hash, 'until', 'owner', 'epoch', 'sequence')
if run[1] and tonumber(run[1]) > now and run[2] ~= owner then return false end
local epoch = num(math.max((tonumber(run[3] or '') or 0) + 1, time[1] * 1000000 + time[2]))
redis.call('HSET', hash, 'epoch', epoch, 'owner', owner, 'until', num(now + ttl))
if run[4] then persist(hash) else redis.call('PEXPIRE', hash, ttl) end
return epoch`,

  renew: `${KEYS}${NOW}
local runId, epoch, ttl = unpack(ARGV)
local hash = hashOf(runId)
local run = redis.call('HMGET', hash, 'epoch', 'until', 'sequence')
if run[1] ~= epoch or not run[2] then return 0 end
redis.call('HSET', hash, 'until', num(now + ttl))
if not run[3] then redis.call('PEXPIRE', hash, ttl) end
return 1`,

  /** Removes a run that was never saved. */
  release: `${KEYS}${NOW}${OWN_KEYS}${EXPIRE}
local runId, epoch = unpack(ARGV)
local hash = hashOf(runId)
local run = redis.call('HMGET', hash, 'epoch', 'sequence', 'ttl', 'index')
if run[1] ~= epoch then return 0 end
if not run[2] then return redis.call('DEL', hash) end
redis.call('HDEL', hash, 'until')
if run[3] then expire(runId, run[3], run[4]) end
return 1`,

  /** Ends the claim of an owner, if it still has it. */
  evict: `${KEYS}
local hash = hashOf(ARGV[1])
if redis.call('HGET', hash, 'owner') ~= ARGV[2] then return 0 end
return redis.call('HDEL', hash, 'until')`,

  /** The next runs of some statuses, and of one graph if one is named, newest save first. */
  runs: `${KEYS}${LISTED}
local most, max, last, lastRun, only = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]
local isWanted, found = {}, {}
for i = 6, #ARGV do isWanted[ARGV[i]] = true end
local function add(index)
  local left, offset = most, 0
  repeat
    local page = redis.call('ZREVRANGEBYSCORE', tag .. ':runs:' .. index, max, '-inf', 'WITHSCORES', 'LIMIT', offset, most)
    for at = 1, #page, 2 do
      local runId, score = page[at], tonumber(page[at + 1])
      local isPast = score == last and runId >= lastRun
      if left > 0 and not isPast and redis.call('HEXISTS', hashOf(runId), 'sequence') == 1 then
        found[#found + 1] = {runId, score}
        left = left - 1
      end
    end
    offset = offset + most
  until left == 0 or #page < 2 * most
end
for _, index in ipairs(redis.call('SMEMBERS', tag .. ':indexes')) do
  local status, graph = string.match(index, '^(.-):(.*)$')
  if isWanted[status] and (only == '' or only == '=' .. graph) then add(index) end
end
table.sort(found, function(a, b) if a[2] ~= b[2] then return a[2] > b[2] end return a[1] > b[1] end)
local page = {}
for i = 1, math.min(most, #found) do page[i] = listed(found[i][1], num(found[i][2])) end
return page`,

  run: `${KEYS}${LISTED}
local index = redis.call('HGET', hashOf(ARGV[1]), 'index')
return index and {listed(ARGV[1], redis.call('ZSCORE', tag .. ':runs:' .. index, ARGV[1]) or '0')} or {}`,

  /** The cursor for the next call, "0" at the end, followed by some of the runs. */
  list: `${KEYS}
local page = redis.call('SSCAN', tag .. ':all', ARGV[1], 'COUNT', 1000)
local found = {page[1]}
for _, runId in ipairs(page[2]) do
  if redis.call('HEXISTS', hashOf(runId), 'sequence') == 1 then found[#found + 1] = runId end
end
return found`,

  find: `return redis.call('GET', KEYS[1] .. ':checkpoint:' .. ARGV[1])`,
  saveGraph: `return redis.call('HSETNX', KEYS[1] .. ':graphs', ARGV[1], ARGV[2])`,
  graph: `return redis.call('HGET', KEYS[1] .. ':graphs', ARGV[1])`,
  /** A write that makes WAIT and WAITAOF wait for everything before it on this connection. */
  touch: `return redis.call('SET', KEYS[1] .. ':touched', '1')`,
  facts: `
local found = {}
for i, section in ipairs({'server', 'persistence', 'replication', 'memory', 'cluster'}) do
  found[i] = redis.call('INFO', section)
end
return table.concat(found, '\\n')`,
} as const;

/** The command that calls a script by its hash or, if the server does not know that, by its text. */
export function commandOf(
  { sha1, text }: Script,
  isKnown: boolean,
  tag: string,
  args: readonly string[],
): string[] {
  return [isKnown ? "evalsha" : "eval", isKnown ? sha1 : text, "1", tag, ...args];
}

function made<K extends string>(all: Readonly<Record<K, string>>): Readonly<Record<K, Script>> {
  const entries = Object.entries<string>(all).map(([name, text]) => {
    return [name, { text, sha1: createHash("sha1").update(text).digest("hex") }];
  });
  return Object.fromEntries(entries) as Record<K, Script>;
}

/** The scripts of a store. */
export const scripts = made(texts);
