'use strict';
// Numbers and times as texts, and what each term means.
const $ = (id) => document.getElementById(id);
const whole = new Intl.NumberFormat('en');
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 });
const two = new Intl.NumberFormat('en', { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const percent = new Intl.NumberFormat('en', { style: 'percent', minimumFractionDigits: 1, maximumFractionDigits: 1 });

const say = (id, text) => { const at = typeof id === 'string' ? $(id) : id; if (at.textContent !== text) at.textContent = text; };
const times = (ratio) => `${two.format(ratio)} ×`;
const some = (count, noun) => `${whole.format(count)} ${noun}${count === 1 ? '' : 's'}`;
// Tenths of a second, or hundredths where the whole is below one.
const figure = (value, of = value) => (of < 0.95 ? value.toFixed(2) : value < 100 ? value.toFixed(1) : whole.format(Math.round(value)));
// One digit more for what would read as nothing.
const fine = (value, of) => { const text = figure(value, of); return Number(text) ? text : value.toFixed(of < 0.95 ? 3 : 2); };
const seconds = (value) => (value >= 0.0005 && value < 0.05 ? `${Math.round(value * 1000)} ms` : `${figure(value)} s`);
const clock = (at) => new Date(at * 1000).toLocaleTimeString('en-GB');
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const fullest = (values) => values.reduce((best, value, at) => (value > values[best] ? at : best), 0);
function age(value) {
  const s = Math.max(0, Math.round(value));
  if (s < 60) return `${s} s`;
  return s < 3600 ? `${Math.floor(s / 60)} min ${s % 60} s` : `${Math.floor(s / 3600)} h ${Math.floor(s / 60) % 60} min`;
}
function about(value) {
  if (value < 90) return `${Math.max(1, Math.round(value))} s`;
  return value < 5400 ? `${Math.round(value / 60)} min` : `${Math.round(value / 3600)} h`;
}

// The parts of a batch, in its order.
const PARTS = ['waiting', 'read', 'route', 'work', 'merge', 'commit', 'rest'];
const TERMS = {
  batch: 'One micro-batch of the streaming query, from its trigger to its commit. It ends when its slowest partition ends.',
  waiting: 'Asking the source what is new, planning the batch, and the gaps between Spark’s stages.',
  read: 'Reading records from the source, decoding them, and writing them to the shuffle.',
  route: 'Choosing a partition for each record: the grouping’s share of the tasks that read.',
  work: 'From the first partition’s start to the last one’s end, with starting tasks and fetching rows. The slowest partition’s busy time above the mean is lost to skew.',
  merge: 'Spark’s own aggregation of the partial results, with its state, and the sinks.',
  commit: 'The offsets’ log before the batch, and all that follows its last stage.',
  rest: 'Reading, merging and writing, where Spark reports no times of its stages.',
  'under key': 'The same batch, had each key been sent to one partition by its hash, as groupBy does. A key costs what it cost here, where the operator measures that of each key; otherwise a record costs what those of its partition cost in the mean.',
  skew: 'The time of the batch beyond what it would take with all partitions equal.',
  throughput: 'Records of the source that the batch read, over its time. Below: how many arrive in the source, by the change of its newest offsets.',
  lag: 'Records in Kafka that were not read yet when the batch began. The trend is that of the last batches.',
  trigger: 'How often a batch is to begin. Batches that take longer make those behind them begin late.',
  grouping: 'The algorithm that chooses the partition of each record.',
  way: 'One of the groupings that auto chooses from; before each batch it may take another.',
  operator: 'What is computed of the records of each key.',
  'as routed': 'The load of each partition as the records were sent.',
  mean: 'The mean over all partitions.',
  'slowest partition': 'For how long the operator worked in the partition where it took longest.',
  records: 'What the operator was given: a record of the source may become several, one for each of its keys, such as the words of a line.',
  busy: 'For how long the operator worked in the partition, without fetching rows.',
  keys: 'Distinct keys of which the partition had records; of each it makes a partial result.',
  'max over mean': 'Records of the fullest partition over the mean: what the work of a batch is stretched by, if records cost the same.',
  imbalance: 'The greatest load minus the mean, as a part of all records.',
  'hot keys': 'Keys that the grouping treats as hot now.',
  replication: '(Key, partition) pairs over distinct keys: 1 means that no key was split.',
  files: 'Files that the batch added to the table. Each writer adds one for each value of the columns that the table is partitioned by.',
  watermark: 'Event time behind which windows are closed: records for those are late.',
  result: 'What became of the records that the batch read, for each result of the job: each result has all of them.',
  counted: 'Records that are in totals of the result.',
  filtered: 'Records of which a condition (where) of the job or of the result is not true.',
  rejected: 'Records that the result could not use: they are dead letters.',
  late: 'Records whose windows were closed already.',
  'late partials': 'Partial results whose windows were closed already, so that no total has them; counted since the job started.',
  'dead letters': 'Records that could not be used, kept with the reason; counted since the job started.',
  record: 'Where the record is: topic, partition and offset.',
  reason: 'Why the record could not be used; the runbook has what each reason means.',
  value: 'How the record’s value begins, or a hash of it by a secret of the checkpoint.',
  partition: 'Where a record is sent: one task that works, numbered from 0.',
  key: 'What the operator aggregates by; a grouping sees only its hash.',
  head: 'The keys that the grouping treats as hot; where it treats none so, those of more than a partition’s fair share. All others are the tail.',
  'of the batch': 'The key’s part of all records of the batch.',
  'fair shares': 'Records of the key over the mean load of a partition: above 1, a partition alone with it is too full.',
};

// A term's meaning is shown while the pointer or the focus is on it; screen readers read it out.
function explain(term) {
  term.tabIndex = 0;
  term.setAttribute('aria-describedby', 'tip');
  return term;
}
function makeTerm(name, text) {
  const term = document.createElement('dfn');
  term.dataset.term = name;
  term.textContent = text || name;
  return explain(term);
}
// Texts and terms, each a pair of the term and how it is written. A term that stays keeps its focus.
function put(id, ...parts) {
  const at = $(id), nodes = [...at.childNodes];
  const stays = (part, node) => (Array.isArray(part) ? node.dataset && node.dataset.term === part[0] : node.nodeType === Node.TEXT_NODE);
  if (nodes.length !== parts.length || !parts.every((part, p) => stays(part, nodes[p]))) {
    at.replaceChildren(...parts.map((part) => (Array.isArray(part) ? makeTerm(...part) : part)));
    return;
  }
  parts.forEach((part, p) => say(nodes[p], Array.isArray(part) ? part[1] || part[0] : part));
}
function showTip(event) {
  const term = event.target.closest && event.target.closest('dfn[data-term]');
  if (!term) return;
  const tip = $('tip'), at = term.getBoundingClientRect();
  say(tip, TERMS[term.dataset.term]);
  tip.hidden = false;
  const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
  tip.style.left = `${Math.max(8, Math.min(at.left, room)) + scrollX}px`;
  const below = at.bottom + tip.offsetHeight + 12 < innerHeight;
  tip.style.top = `${(below ? at.bottom + 6 : at.top - tip.offsetHeight - 6) + scrollY}px`;
}
function hideTip() { $('tip').hidden = true; }
for (const kind of ['pointerover', 'focusin']) addEventListener(kind, showTip);
addEventListener('focusout', hideTip);
addEventListener('pointerout', (event) => { if (event.target.matches && event.target.matches('dfn')) hideTip(); });
addEventListener('keydown', (event) => { if (event.key === 'Escape') hideTip(); });
