// Loaded before the page is drawn, so that a chosen theme does not flash. The choice: auto, light or dark.
(function () {
  let theme = 'auto';
  try {
    theme = localStorage.getItem('sesame-theme') || 'auto';
  } catch {
    // storage is not available: the system's theme
  }
  if (theme !== 'auto') document.documentElement.dataset.theme = theme;
})();
