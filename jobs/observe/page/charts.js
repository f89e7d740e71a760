// Drawing: bars of partitions, batches over clock time, lag, the parts of one batch.
const SVG = 'http://www.w3.org/2000/svg';

function fill(box, count, tag = 'i') {
  while (box.childElementCount > count) box.lastChild.remove();
  while (box.childElementCount < count) box.append(box instanceof SVGElement ? document.createElementNS(SVG, tag) : document.createElement(tag));
}

// Both ways as bars over the same partitions, each the fullest of as many as there is no room for.
function drawWays(own, picked) {
  const top = Math.max(1, ...own.records, ...own.under_key);
  const room = Math.max(1, Math.floor($('plot').clientWidth / 4));
  const each = Math.ceil(own.records.length / room), count = Math.ceil(own.records.length / each);
  $('plot').classList.toggle('dense', count * 14 > $('plot').clientWidth);
  $('plot').style.setProperty('--inset', `${0.24 * $('plot').clientWidth / count}px`);
  for (const [id, values] of [['under', own.under_key], ['routed', own.records]]) {
    const box = $(id);
    fill(box, count);
    [...box.children].forEach((bar, b) => {
      bar.style.height = `${100 * Math.max(...values.slice(b * each, (b + 1) * each)) / top}%`;
      bar.classList.toggle('on', picked !== null && Math.floor(picked / each) === b);
    });
  }
  const height = $('routed').clientHeight;
  document.querySelector('.mean').style.bottom = `${height * mean(own.records) / top}px`;
  const at = labelPeak($('under-peak'), own.under_key, height / top, each * count, null);
  labelPeak($('routed-peak'), own.records, height / top, each * count, at);
  return each;
}
// A label over the fullest partition; left out where it would lie on the other one.
function labelPeak(label, values, scale, slots, other) {
  const tallest = fullest(values), left = (tallest + 0.5) / slots, bottom = scale * values[tallest];
  const crowded = other && Math.abs(other.bottom - bottom) < 20 && Math.abs(other.left - left) * $('plot').clientWidth < 130;
  label.hidden = Boolean(crowded);
  label.style.bottom = `${bottom}px`;
  label.style.left = `clamp(4rem, ${100 * left}%, 100% - 4rem)`;
  say(label, `p${tallest}: ${whole.format(values[tallest])}`);
  return { left, bottom };
}

// One batch's parts side by side, and below them the same batch under key, on one scale.
function drawParts(entry) {
  const under = entry.under_key_seconds, top = Math.max(entry.seconds, under || 0, 0.001);
  const own = $('own-bar');
  fill(own, PARTS.length);
  PARTS.forEach((name, p) => {
    own.children[p].className = `part ${name}`;
    own.children[p].style.width = `${100 * entry.parts[name] / top}%`;
  });
  $('under-bar').hidden = !showsUnderKey(entry);
  $('under-bar').style.width = `${100 * (under || 0) / top}%`;
  const texts = PARTS.filter((name) => entry.parts[name] > 0).map((name) => `${name} ${seconds(entry.parts[name])}`);
  $('bars').setAttribute('aria-label', `Parts of the batch: ${texts.join(', ')}` + (showsUnderKey(entry) ? `; under key ${seconds(under)} in all` : ''));
}
const showsUnderKey = (entry) => entry.under_key_seconds !== null && entry.grouping !== 'key';

// Which stretch of time a chart shows, and where on it a moment is.
function timeScale(seen, width, until) {
  const last = seen[seen.length - 1], typical = middle(seen.map((each) => each.seconds));
  const end = Math.max(until, last.began + last.seconds);
  const span = Math.max(end - seen[0].began, 8 * typical, 1);
  return { start: end - span, end, x: (at) => width * (at - end + span) / span };
}
const middle = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];

function drawTimeline(entry, seen, until, trigger) {
  const svg = $('timeline'), width = svg.clientWidth, height = svg.clientHeight;
  const longest = Math.max(...seen.map((each) => each.seconds), 0.001);
  // The first batch of a run is often long: it must not make all others flat.
  let top = Math.min(longest, Math.max(0.001, 3 * middle(seen.map((each) => each.seconds))));
  const lined = trigger && trigger < 4 * top;
  if (lined) top = Math.max(top, 1.1 * trigger);
  const scale = timeScale(seen, width, until), y = (value) => height * (1 - Math.min(value, top) / top);
  svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
  const paths = Object.fromEntries(PARTS.map((name) => [name, '']));
  const boxes = seen.map((each) => {
    const left = scale.x(each.began), right = Math.max(left + 1.5, scale.x(each.began + each.seconds) - 0.5);
    let sum = 0;
    for (const name of PARTS) {
      const from = y(sum), to = y(sum += each.parts[name]);
      if (from > to) paths[name] += `M${left.toFixed(1)} ${from.toFixed(1)}H${right.toFixed(1)}V${to.toFixed(1)}H${left.toFixed(1)}Z`;
    }
    return { left, right, y: y(each.seconds), each };
  });
  fill(svg, PARTS.length + 3 + seen.length, 'path');
  const shapes = [...svg.children];
  PARTS.forEach((name, p) => { shapes[p].setAttribute('class', `part ${name}`); shapes[p].setAttribute('d', paths[name]); });
  const at = PARTS.length;
  shapes[at].setAttribute('class', 'trigger');
  shapes[at].setAttribute('d', lined ? `M0 ${y(trigger)}H${width}` : '');
  shapes[at + 1].setAttribute('class', 'cuts');
  shapes[at + 1].setAttribute('d', boxes.filter((box) => box.each.seconds > top).map((box) => `M${box.left - 1} 8L${box.right + 1} 5`).join(''));
  // A frame would hide the parts of a narrow batch: an arrow points at it.
  const shownBox = boxes.find((box) => box.each === entry && box.right - box.left < 6);
  shapes[at + 2].setAttribute('class', 'arrow');
  shapes[at + 2].setAttribute('d', shownBox ? `M${shownBox.left - 4} ${shownBox.y - 9}H${shownBox.right + 4}L${(shownBox.left + shownBox.right) / 2} ${shownBox.y - 2}Z` : '');
  boxes.forEach((box, b) => {
    const shape = shapes[at + 3 + b], fresh = b > 0 && box.each.run !== seen[b - 1].run;
    shape.setAttribute('class', `batch${box.each === entry && box !== shownBox ? ' on' : ''}${fresh ? ' new' : ''}`);
    shape.setAttribute('d', fresh ? `M${box.left} ${height}V0` : `M${box.left} ${height}V${box.y}H${box.right}V${height}Z`);
    shape.dataset.seconds = box.each.seconds;
    if (fresh && box.each === entry) shape.setAttribute('d', `M${box.left} ${height}V${box.y}H${box.right}V${height}Z`);
  });
  return { top, longest, lined, scale, boxes };
}

function drawLag(seen, until) {
  const svg = $('lag-line'), width = svg.clientWidth, height = svg.clientHeight;
  const known = seen.filter((each) => each.lag !== null);
  $('lag-part').hidden = !known.length;
  if (!known.length) return;
  const top = Math.max(1, ...known.map((each) => each.lag)), scale = timeScale(seen, width, until);
  svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
  const points = known.map((each) => `${scale.x(each.began).toFixed(1)},${(height - (height - 3) * each.lag / top).toFixed(1)}`);
  if (points.length === 1) points.push(`${width},${points[0].split(',')[1]}`);
  svg.firstElementChild.setAttribute('points', points.join(' '));
  say('lag-scale', `at most ${short.format(top)}`);
  svg.setAttribute('aria-label', `Lag over ${some(known.length, 'batch').replace('batchs', 'batches')}, at most ${whole.format(top)} records`);
}
