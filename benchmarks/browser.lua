-- Requests of wrk as browsers send them: one report a request, a fresh batch id in each, from a page of another origin.
--
--     wrk -t1 -c64 -d2s -s benchmarks/browser.lua http://127.0.0.1:PORT -- JOB
--
-- JOB is a file of lines: the path, the content type, the origin, how the batch id is written (bytes or digits), then
-- in hexadecimal the beginning of a body and any number of ends, all equally long. A request is the beginning, a batch
-- id, and one of the ends in turn. Prints one line of JSON.

local head, ends, count, digits = "", {}, 0, false

local function unhex(text)
  return (text:gsub("..", function(digits) return string.char(tonumber(digits, 16)) end))
end

local function number(n, bytes)
  local out = {}
  for i = 1, bytes do
    out[i] = string.char(n % 256)
    n = math.floor(n / 256)
  end
  return table.concat(out)
end

local function written(bytes)
  if not digits then return bytes end
  return (bytes:gsub(".", function(byte) return string.format("%02x", byte:byte()) end))
end

function init(args)
  local lines = {}
  for line in io.lines(args[1]) do lines[#lines + 1] = line end
  digits = lines[4] == "digits"
  local begin = unhex(lines[5])
  for i = 6, #lines do ends[i - 5] = unhex(lines[i]) end
  -- Eight random bytes for this thread and run, then a counter: ids that were never sent before.
  local file = io.open("/dev/urandom", "rb")
  local prefix = written(file:read(8))
  file:close()
  -- The headers of a fetch() from a page in a current browser.
  head = table.concat({
    "POST " .. lines[1] .. " HTTP/1.1", "Host: 127.0.0.1:" .. wrk.port, "Connection: keep-alive",
    "Content-Length: " .. (#begin + 2 * #prefix + #ends[1]),
    'sec-ch-ua-platform: "Linux"',
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/150.0.0.0 Safari/537.36",
    'sec-ch-ua: "Not)A;Brand";v="8", "Chromium";v="150"', "Content-Type: " .. lines[2], "sec-ch-ua-mobile: ?0",
    "Accept: */*", "Origin: " .. lines[3], "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: cors",
    "Sec-Fetch-Dest: empty", "Referer: " .. lines[3] .. "/", "Accept-Encoding: gzip, deflate, br, zstd",
    "Accept-Language: en-US,en;q=0.9", "", "",
  }, "\r\n") .. begin .. prefix
end

function request()
  count = count + 1
  return head .. written(number(count, 8)) .. ends[count % #ends + 1]
end

function done(summary, latency)
  io.write(string.format(
    '{"requests": %d, "seconds": %.6f, "refused": %d, "broken": %d, "p50": %.6f, "p99": %.6f}\n',
    summary.requests, summary.duration / 1e6, summary.errors.status,
    summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout,
    latency:percentile(50) / 1e6, latency:percentile(99) / 1e6))
end
