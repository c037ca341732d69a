// Starts the page: models, list of panels, address, theme, shortcuts.

import { h, replace, plural, announce } from './dom.js';
import { get } from './api.js';
import { panels } from './panels.js';
import { parseHash } from './state.js';
import { Context } from './context.js';
import { empty } from './widgets.js';

const $ = (id) => document.getElementById(id);
let models = [];
let current = null; // the context of the panel that is shown

const usable = (panel) =>
  !panel.tasks.length || models.some((m) => panel.tasks.some((t) => (m.tasks || []).includes(t)));

// ---- list of panels ----

function drawNav(id) {
  const groups = [...new Set(panels.map((p) => p.group))];
  const focused = $('nav').contains(document.activeElement);
  replace(
    $('nav'),
    groups.map((group) =>
      h(
        'div',
        { class: 'nav-group' },
        h('h2', null, group),
        h(
          'ul',
          null,
          panels
            .filter((p) => p.group === group)
            .map((p) =>
              h(
                'li',
                null,
                h(
                  'a',
                  {
                    href: `#/${p.id}`,
                    'aria-current': p.id === id ? 'page' : null,
                    class: usable(p) ? null : 'unavailable',
                    'data-panel': p.id,
                  },
                  p.title,
                  usable(p) ? null : h('span', { class: 'badge' }, 'no model'),
                ),
              ),
            ),
        ),
      ),
    ),
    h('div', { class: 'nav-group' }, h('h2', null, 'Programs'), h('ul', null, h('li', null, h('a', { href: '/docs' }, 'API')))),
  );
  if (focused) $('nav').querySelector('[aria-current]')?.focus({ preventScroll: true });
}

function setModels(list) {
  models = list;
  $('server-state').textContent = `${plural(models.length, 'model')} loaded`;
}

function showUnavailable(panel) {
  const name = panel.bundled || 'DIR';
  return h(
    'article',
    { class: 'panel' },
    h(
      'header',
      { class: 'panel-head' },
      h('h1', null, panel.title),
      h('p', { class: 'lead' }, panel.summary),
    ),
    h(
      'section',
      { class: 'card', 'aria-label': 'No model' },
      h('h2', null, 'No loaded model does this'),
      h(
        'p',
        null,
        panel.bundled
          ? 'Start the server with a model for this task. One is bundled:'
          : 'Start the server with the folder of a model for this task:',
      ),
      h(
        'div',
        { class: 'code' },
        h('pre', { tabindex: '0', 'aria-label': 'Command' }, `sesame serve -m ${name}`),
      ),
      panel.bundled ? null : h('p', { class: 'note' }, panel.hint || ''),
    ),
  );
}

// ---- address ----

function route() {
  const { id, values } = parseHash(location.hash);
  const panel = panels.find((p) => p.id === id) || panels.find(usable) || panels[0];
  if (current) current.destroy();
  current = null;
  document.title = `${panel.title} – Sesame`;
  drawNav(panel.id);
  if (document.body.classList.contains('menu-open')) $('main').focus();
  closeMenu();
  if (!usable(panel)) {
    replace($('main'), showUnavailable(panel));
  } else {
    const context = new Context(panel, models, values);
    current = context;
    replace($('main'), context.root);
    if (panel.shown) panel.shown(context);
    context.run();
  }
  window.scrollTo(0, 0);
}

function goto(panel) {
  location.hash = `#/${panel.id}`;
}

// ---- menu on narrow screens ----

function closeMenu() {
  document.body.classList.remove('menu-open');
  $('menu-button').setAttribute('aria-expanded', 'false');
}

function toggleMenu() {
  const open = document.body.classList.toggle('menu-open');
  $('menu-button').setAttribute('aria-expanded', String(open));
  if (open) $('nav').querySelector('a').focus();
}

// ---- theme ----

const themes = ['auto', 'light', 'dark'];
const themeNames = {
  auto: ['◐', 'Theme: as the system'],
  light: ['☀', 'Theme: light'],
  dark: ['☾', 'Theme: dark'],
};

function drawTheme() {
  const theme = document.documentElement.dataset.theme || 'auto';
  const [sign, label] = themeNames[theme];
  replace($('theme-button'), h('span', { 'aria-hidden': 'true' }, sign));
  $('theme-button').setAttribute('aria-label', label);
  $('theme-button').title = label;
}

function nextTheme() {
  const now = document.documentElement.dataset.theme || 'auto';
  const next = themes[(themes.indexOf(now) + 1) % themes.length];
  if (next === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  try {
    localStorage.setItem('sesame-theme', next);
  } catch {
    // storage is not available: the choice lasts until the page is left
  }
  drawTheme();
  announce(themeNames[next][1]);
  themeChanged();
}

function themeChanged() {
  if (current?.panel.themed) current.redraw();
}

// ---- shortcuts ----

const typing = (element) => element.matches('input, textarea, select, [contenteditable]');

function shortcut(event) {
  if (event.ctrlKey || event.metaKey) {
    if (event.key === 'Enter' && current && !current.panel.live) {
      event.preventDefault();
      current.run();
    }
    return;
  }
  if (event.altKey && (event.key === 'ArrowUp' || event.key === 'ArrowDown')) {
    event.preventDefault();
    const at = panels.findIndex((p) => p.id === parseHash(location.hash).id);
    const step = event.key === 'ArrowUp' ? -1 : 1;
    goto(panels[(Math.max(at, 0) + step + panels.length) % panels.length]);
    return;
  }
  if (event.key === 'Escape') closeMenu();
  if (typing(event.target) || document.querySelector('dialog[open]')) return;
  if (event.key === '/') {
    const field = $('main').querySelector('textarea, input[type=text]');
    if (field) {
      event.preventDefault();
      field.focus();
    }
  } else if (event.key === '?') {
    $('help-dialog').showModal();
  }
}

function navKeys(event) {
  if (event.altKey || (event.key !== 'ArrowDown' && event.key !== 'ArrowUp')) return;
  const links = [...$('nav').querySelectorAll('a')];
  const at = links.indexOf(document.activeElement);
  const next = links[at + (event.key === 'ArrowDown' ? 1 : -1)];
  if (at >= 0 && next) {
    event.preventDefault();
    next.focus();
  }
}

// ---- start ----

async function start() {
  drawTheme();
  $('theme-button').addEventListener('click', nextTheme);
  $('help-button').addEventListener('click', () => $('help-dialog').showModal());
  $('menu-button').addEventListener('click', toggleMenu);
  $('nav').addEventListener('keydown', navKeys);
  document.querySelector('.skip').addEventListener('click', (event) => {
    event.preventDefault();
    $('main').focus();
  });
  document.addEventListener('keydown', shortcut);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', themeChanged);
  await load();
}

async function load() {
  replace($('main'), empty('Asking the server for its models …'));
  try {
    setModels((await get('/v1/models')).data.data);
  } catch (error) {
    $('server-state').textContent = 'not connected';
    replace(
      $('main'),
      h(
        'section',
        { class: 'card', 'aria-label': 'Error' },
        h('h1', null, 'No connection'),
        h('p', { role: 'alert' }, error.message),
        h('p', null, h('button', { type: 'button', class: 'primary', onclick: load }, 'Try again')),
      ),
    );
    return;
  }
  window.addEventListener('hashchange', route);
  document.addEventListener('models', (event) => {
    setModels(event.detail);
    drawNav(parseHash(location.hash).id || panels[0].id);
  });
  route();
}

start();
