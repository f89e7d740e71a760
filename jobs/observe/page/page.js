const KEPT = 120, ASK_MS = 1000, RETRY_MS = 2000, HIDDEN_MS = 10000, STALE_MS = 4000, NEWS_MS = 60000, TREND_BATCHES = 12;
const RUNBOOKS = { failed: 'UnskewQueryDown', stalled: 'UnskewQueryStalled' };
const ENDED = ['failed', 'stalled', 'stopped'];
const ROUTED_BY = { none: 'by Spark’s hash of the key', local: 'as read, grouping local' };
let head = null, entries = [], chosen = null, partition = null, heard = Date.now(), restarted = null, timer = 0, errorStatus = 0, asking = false, failing = false, drawn = null;

// Asking: only for what is new, and for everything when the job has been restarted.
async function ask() {
  if (asking) return;
  asking = true;
  clearTimeout(timer);
  const last = head && entries.length && entries[entries.length - 1].run === head.run ? entries[entries.length - 1].batch : -1;
  let pause = ASK_MS;
  try {
    const query = head ? `?run=${head.run}&after=${last}` : '';
    const answer = await fetch(`batches.json${query}`, { cache: 'no-store', signal: AbortSignal.timeout(5000) });
    errorStatus = answer.ok ? 0 : answer.status;
    if (!answer.ok) throw new Error(answer.status);
    take(await answer.json());
    failing = false;
  } catch {
    failing = true;
    pause = RETRY_MS;
  }
  asking = false;
  showState();
  timer = setTimeout(ask, document.hidden ? HIDDEN_MS : pause);
}
function take(answer) {
  if (head && head.job !== answer.job) { entries = []; restarted = null; }
  else if (head && head.run !== answer.run) restarted = answer.started;
  const fresh = !head || answer.batches.length || head.run !== answer.run || head.state !== answer.state;
  head = answer;
  heard = Date.now();
  for (const batch of answer.batches) {
    const taken = batch.choice ? batch.choice.way : answer.grouping;
    entries.push({ ...batch, run: answer.run, grouping: taken });
  }
  entries.splice(0, Math.max(0, entries.length - KEPT));
  if (!entries.includes(chosen)) chosen = null;
  if (fresh) draw();
}
const shown = () => chosen || entries[entries.length - 1];

// What to know before reading any number.
function showState() {
  const silent = Date.now() - heard, stale = failing && silent > STALE_MS, last = entries[entries.length - 1];
  const state = stale ? 'no answer' : head ? head.state : 'connecting';
  const of = last ? `Shown is batch ${whole.format(last.batch)} of ${clock(last.at)}.` : 'No batch was seen yet.';
  let why = '', extra = '';
  if (stale && (errorStatus === 401 || errorStatus === 403)) why = 'The job refuses this page: reload it to give a password. ' + of;
  else if (stale) {
    why = `The job does not answer. ${of} This page goes on by itself when the job does.`;
    if (head && !head.port_fixed) why += ' With metrics.port auto it may then be at another port: see its log.';
    extra = `Silent for ${age(silent / 1000)}.`;
  } else if (state === 'stalled') why = 'The query has stalled: for five minutes or more it ended no batch, completed no task and polled no source. ' + of;
  else if (state === 'failed') why = 'The query has failed; its log says why. ' + of;
  else if (state === 'stopping' || state === 'stopped') why = `The query is ${state}. ${of}`;
  else if (restarted && Date.now() - restarted * 1000 < NEWS_MS + silent) why = `The job restarted at ${clock(restarted)}.`;
  else if (head && !last) why = state === 'starting' ? 'The job starts; no batch is done yet.' : 'The query waits for its first records.';
  document.body.classList.toggle('stale', stale);
  document.body.classList.toggle('not-running', !['running', 'starting', 'connecting'].includes(state));
  $('note').hidden = !why;
  say('why', why);
  say('age', extra);
  say('state', state);
  // A job that does not answer cannot serve its runbook either.
  const runbook = stale ? '' : RUNBOOKS[state];
  $('runbook').hidden = !runbook;
  if (runbook) $('runbook').href = `docs/operating.md#:~:text=%23%20${runbook}`;
  say('runbook', runbook ? 'What to do' : '');
  if (!head) return;
  say('job', head.job);
  const choice = last && last.choice;
  const taken = choice ? [' ', ['way', 'takes'], ` ${choice.next_way} (${choice.why})`] : [];
  put('what', ['grouping'], ` ${head.grouping}`, ...taken, ' · ', ['operator'], ` ${head.operator} · ${whole.format(head.partitions)} `,
    ['partition', head.partitions === 1 ? 'partition' : 'partitions']);
  document.title = `${head.job}: ${state}`;
  if (last) {
    const old = age(head.now - last.at + silent / 1000);
    say('when', chosen ? `of ${clock(chosen.at)}, chosen below` : `${old} ago${head.waiting ? ', no records since' : ''}`);
  }
}

function draw() {
  const entry = shown();
  $('main').hidden = !entry;
  if (!entry) return;
  say('title', `Batch ${whole.format(entry.batch)}`);
  verdict(entry);
  tiles(entry);
  loads(entry);
  timeline(entry);
  results(entry);
  hot(entry);
  deadLetters(entry);
}

// The first sentence: where the batch's time went, and what skew costs.
function makeVerdict() {
  const text = (id) => { const at = document.createElement('b'); at.id = id; return at; };
  $('verdict').append(makeTerm('batch', 'Batch'), ' ', text('seconds'), ':');
  for (const name of PARTS) {
    const part = document.createElement('span');
    part.id = `part-${name}`;
    part.className = `part ${name}`;
    part.append(' ', makeTerm(name), ' ', text(`part-${name}-seconds`), text(`part-${name}-more`));
    $('verdict').append(part);
  }
  $('cost').append(...['under', 'skew'].map((name) => {
    const part = document.createElement('span');
    part.id = `cost-${name}`;
    part.append(makeTerm(name === 'under' ? 'under key' : 'skew', name === 'under' ? 'Under key' : 'Skew'), text(`cost-${name}-seconds`));
    return part;
  }));
}
function verdict(entry) {
  say('seconds', seconds(entry.seconds));
  const text = (value) => fine(value, entry.seconds);
  const used = PARTS.filter((name) => Number(text(entry.parts[name])) > 0);
  for (const name of PARTS) {
    $(`part-${name}`).hidden = !used.includes(name);
    say(`part-${name}-seconds`, text(entry.parts[name]));
    const work = name === 'work' && entry.slowest_busy_seconds !== null
      ? [' (', ['slowest partition'], ` ${text(entry.slowest_busy_seconds)}; `, ['mean'], ` ${text(entry.mean_busy_seconds)})`] : [];
    put(`part-${name}-more`, ...work, name === used[used.length - 1] ? '.' : ',');
  }
  const under = entry.under_key_seconds, level = entry.level_seconds;
  $('cost').hidden = level === null;
  $('cost-under').hidden = !showsUnderKey(entry);
  if (level !== null) {
    say('cost-under-seconds', ` ${seconds(under)}. `);
    const lost = entry.seconds - level;
    say('cost-skew-seconds', lost < 0.01 * entry.seconds || text(lost) === text(0) ? ' costs nothing.' : ` costs ${text(lost)} s of the ${seconds(entry.seconds)}.`);
  }
  drawParts(entry);
}

function tiles(entry) {
  const rejected = Object.entries(entry.dead_letters), at = entries.indexOf(entry);
  const recent = entries.slice(Math.max(0, at + 1 - TREND_BATCHES), at + 1).filter((each) => each.run === entry.run && each.lag !== null);
  const lag = chosen ? entry.lag : head.lag, arriving = arrivals(recent);
  say('rate', `${short.format(entry.source_records / Math.max(entry.seconds, 0.001))}/s`);
  say('arrivals', arriving === null ? `${some(entry.records, 'record')} in the batch` : `${short.format(arriving)}/s arrive`);
  say('lag', lag === null ? '–' : short.format(lag));
  say('trend', lag === null ? 'not from Kafka' : trend(recent, lag));
  const every = head.trigger_seconds;
  say('trigger', every === null ? '–' : every ? seconds(every) : 'at once');
  say('used', every === null ? 'ends with what is there' : every ? `${percent.format(entry.seconds / every)} of it used` : 'a batch follows the last');
  say('max', entry.partitions ? times(entry.max_over_mean) : '–');
  put('imbalance', ...(entry.partitions ? [['imbalance'], ` ${percent.format(entry.imbalance)}`] : ['no reports of partitions']));
  say('replication', entry.partitions ? two.format(entry.replication) : '–');
  const hotKeys = entry.routing && entry.routing.hot_keys;
  put('heads', ...(entry.routing ? [`${whole.format(hotKeys)} `, ['hot keys', hotKeys === 1 ? 'hot key' : 'hot keys'], ' in use'] : ['nothing is routed']));
  const written = entry.written;
  // What writes rows has no windows.
  $('files-tile').hidden = !written;
  $('watermark-tile').hidden = Boolean(written);
  say('files', written ? whole.format(written.files) : '');
  say('file-size', written && written.files ? `${short.format(written.bytes / written.files)}B each in the mean` : 'no file in this batch');
  const behind = entry.watermark === null ? null : entry.at - entry.watermark;
  say('watermark', behind === null ? '–' : `${age(Math.abs(behind))} ${behind < 0 ? 'ahead' : 'behind'}`);
  say('watermark-at', behind === null ? 'no windows, or no watermark yet' : new Date(entry.watermark * 1000).toISOString().slice(0, 19) + 'Z');
  say('dead', short.format(head.dead_letters));
  const reasons = rejected.flatMap(([reason, count], r) => [r ? ', ' : '', ['reason', reason], ` ${whole.format(count)}`]);
  put('lost', ...(reasons.length ? reasons : [['late partials'], ` ${whole.format(head.late_partials)}`]));
}
// Records that came into the source from the first of some batches to the last, a second.
function arrivals(recent) {
  const first = recent[0], last = recent[recent.length - 1];
  if (recent.length < 2 || last.began <= first.began) return null;
  const read = recent.slice(1).reduce((sum, each) => sum + each.source_records, 0);
  return Math.max(0, (read + last.lag - first.lag) / (last.began - first.began));
}
function trend(recent, lag) {
  if (lag === 0) return 'caught up';
  const first = recent[0], last = recent[recent.length - 1];
  if (recent.length < 3 || last.began <= first.began || ENDED.includes(head.state)) return 'records not read yet';
  const rate = (last.lag - first.lag) / (last.began - first.began);
  if (Math.abs(rate) * 3600 < lag) return 'steady';
  return rate > 0 ? `grows by ${short.format(rate)}/s` : `caught up in about ${about(lag / -rate)}`;
}

function loads(entry) {
  const own = entry.partitions;
  $('loads').hidden = !own;
  $('no-loads').hidden = Boolean(own);
  say('no-loads', own ? '' : entry.grouping === 'none'
    ? 'Grouping none: nothing is routed. Spark’s own groupBy(key) does the work, and no partition reports its load. Another grouping, such as level, shows it here.'
    : 'This batch had no records.');
  for (const id of ['routed-by', 'under-by']) $(id).hidden = !own;
  if (!own) return;
  partition = partition === null ? null : Math.min(partition, own.records.length - 1);
  put('routed-by', ['as routed', ROUTED_BY[entry.grouping] || `as routed by ${entry.grouping}`], ` ${times(entry.max_over_mean)}`);
  put('under-by', ['under key'], ` ${times(entry.under_key_max_over_mean)}`);
  const each = drawWays(own, partition);
  say('grain', each > 1 ? `A bar is the fullest of ${each} partitions side by side. ` : '');
  readout(own, entry);
  if ($('more').open) table(own);
}
function readout(own, entry) {
  const at = partition === null ? fullest(own.records) : partition, level = mean(own.records) || 1;
  const text = `Partition ${at}: ${some(own.records[at], 'record')} (${times(own.records[at] / level)} the mean), `
    + `under key ${whole.format(own.under_key[at])} (${times(own.under_key[at] / level)}); `
    + `busy ${seconds(own.busy_seconds[at])}; ${some(own.keys[at], 'key')}`;
  say('readout', text);
  const plot = $('plot');
  plot.setAttribute('aria-label', `Partitions, as routed and under key: fullest ${times(entry.max_over_mean)} and ${times(entry.under_key_max_over_mean)} the mean`);
  plot.setAttribute('aria-valuemax', own.records.length - 1);
  plot.setAttribute('aria-valuenow', at);
  plot.setAttribute('aria-valuetext', text);
}
function table(own) {
  rows('table', own.records.map((load, at) => [at, load, own.under_key[at], fine(own.busy_seconds[at], 0), own.keys[at]]));
}
function rows(id, cells) {
  const body = $(id).tBodies[0];
  while (body.rows.length > cells.length) body.deleteRow(-1);
  cells.forEach((values, r) => {
    const row = body.rows[r] || body.insertRow();
    values.forEach((value, c) => {
      let cell = row.cells[c];
      if (!cell) {
        cell = row.appendChild(document.createElement(c ? 'td' : 'th'));
        if (!c) cell.scope = 'row';
      }
      say(cell, typeof value === 'number' ? whole.format(value) : value);
    });
  });
}

function timeline(entry) {
  const seen = entries, every = head.trigger_seconds;
  drawn = drawTimeline(entry, seen, head.now, every);
  const { longest, top, lined, scale } = drawn;
  const starts = seen.filter((each, b) => b && each.run !== seen[b - 1].run).map((each) => clock(each.at));
  say('span', (seen.length > 1 ? `Time of the last ${seen.length} batches, by part, up to ${seconds(longest)}.` : `Time of the batch, by part: ${seconds(longest)}.`)
    + (lined ? ` Dashed: the trigger, ${seconds(every)}.` : every ? ` The trigger, ${seconds(every)}, is far above.` : '')
    + (top < longest ? ` Bars with a stroke are cut at ${seconds(top)}.` : '')
    + (starts.length ? ` Red line: the first batch after a new start, at ${starts.join(', ')}.` : ''));
  say('from', clock(scale.start));
  say('to', clock(scale.end));
  $('timeline').setAttribute('aria-label', `Time of ${seen.length} batches: the newest ${seconds(seen[seen.length - 1].seconds)}, the longest ${seconds(longest)}`);
  const pick = $('pick');
  pick.max = seen.length - 1;
  pick.value = seen.indexOf(entry);
  const text = `${whole.format(entry.batch)}${chosen ? '' : ', the newest'}: ${seconds(entry.seconds)}`;
  pick.setAttribute('aria-valuetext', text);
  say('picked', text);
  pick.hidden = seen.length < 2;
  $('live').hidden = !chosen;
  drawLag(seen, head.now);
  say('lag-now', entry.lag === null ? '' : whole.format(entry.lag));
}

function results(entry) {
  const accounts = Object.entries(entry.results || {});
  $('results-part').hidden = !accounts.length;
  rows('results', accounts.map(([name, of]) => [name, of.counted, of.filtered, of.rejected, of.late]));
}

// The head, a row a key; the tail in one.
function hot(entry) {
  const n = entry.partitions ? entry.partitions.records.length : 1, over = entry.hot_keys.filter(([, count]) => count * n > entry.records).length;
  const size = Math.max(1, (entry.routing && entry.routing.hot_keys) || over), keys = entry.hot_keys.slice(0, size);
  $('hot').hidden = !keys.length;
  $('hot').classList.toggle('hashed', !head.hot_key_names);
  say('hashed', head.hot_key_names ? 'by name, as the job asks' : 'by hash: the job shows no names');
  const rest = entry.records - keys.reduce((sum, [, count]) => sum + count, 0);
  const distinct = entry.partitions ? Math.round(entry.partitions.keys.reduce((sum, count) => sum + count, 0) / entry.replication) - keys.length : 0;
  const all = rest > 0 && keys.length ? [...keys, [`all others, about ${some(Math.max(1, distinct), 'key')}`, rest]] : keys;
  rows('hot', all.map(([name, count]) => [name, count, percent.format(count / entry.records), two.format(count * n / entry.records), '']));
  const most = Math.max(1, ...all.map(([, count]) => count));
  [...$('hot').tBodies[0].rows].forEach((row, r) => {
    const [, , share, , cell] = row.cells;
    row.className = r < keys.length ? '' : 'tail';
    share.className = 'wide';
    cell.className = 'share';
    fill(cell, 1);
    cell.firstChild.style.width = `${100 * all[r][1] / most}%`;
  });
  say('fair', !entry.hot_keys.length ? 'None is shown: metrics.hot_keys is 0, or no partition reported.'
    : over ? `${some(over, 'key')} ${over === 1 ? 'has' : 'have'} more than a partition’s fair share: no grouping that keeps a key whole can level that.`
      : 'No key has more than a partition’s fair share.');
}
function deadLetters(entry) {
  const samples = entry.samples || [];
  $('dead-letters').hidden = !samples.length;
  put('value-head', ['value', head.values_shown ? 'Value' : 'Hash of the value']);
  say('allowed', head.values_shown ? 'the first few; values as metrics.dead_letter_values allows' : 'the first few; metrics.dead_letter_values shows the values');
  rows('samples', samples.map((each) => [each.topic === null ? '–' : `${each.topic}/${each.partition} at ${each.offset}`, each.reason, each.value]));
}

// Keyboard and pointer.
function point(index) {
  const entry = shown();
  if (!entry || !entry.partitions) return;
  partition = Math.max(0, Math.min(entry.partitions.records.length - 1, index));
  loads(entry);
}
const STEPS = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageUp: 10, PageDown: -10 };
$('plot').addEventListener('keydown', (event) => {
  const now = Number($('plot').getAttribute('aria-valuenow'));
  if (event.key in STEPS) point(now + STEPS[event.key]);
  else if (event.key === 'Home') point(0);
  else if (event.key === 'End') point(Infinity);
  else if (event.key === 'Escape') { partition = null; draw(); } else return;
  event.preventDefault();
});
$('plot').addEventListener('pointermove', (event) => {
  const area = $('routed').getBoundingClientRect(), n = shown().partitions.records.length;
  const each = Math.ceil(n / Math.max(1, Math.floor($('plot').clientWidth / 4)));
  point(Math.floor((event.clientX - area.left) / area.width * Math.ceil(n / each)) * each);
});
$('plot').addEventListener('pointerleave', () => { partition = null; draw(); });
function choose(index) {
  chosen = index >= entries.length - 1 ? null : entries[Math.max(0, index)];
  draw();
  showState();
}
$('pick').addEventListener('input', () => choose(Number($('pick').value)));
$('timeline').addEventListener('click', (event) => {
  const x = event.clientX - $('timeline').getBoundingClientRect().left;
  const far = (box) => Math.max(box.left - x, x - box.right, 0);
  choose(drawn.boxes.reduce((best, box, b) => (far(box) < far(drawn.boxes[best]) ? b : best), 0));
});
$('live').addEventListener('click', () => { chosen = null; draw(); showState(); $('pick').focus(); });
$('more').addEventListener('toggle', () => { const entry = shown(); if (entry && entry.partitions) table(entry.partitions); });
addEventListener('resize', draw);
document.addEventListener('visibilitychange', () => { if (!document.hidden) ask(); });
makeVerdict();
document.querySelectorAll('dfn[data-term]').forEach(explain);
setInterval(showState, 1000);
ask();
