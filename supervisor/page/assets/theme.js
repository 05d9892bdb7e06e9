// Applies the person's choice of a light or dark page before the page is drawn. A script without a module, because
// modules run after the first drawing.
"use strict";
try {
  const theme = localStorage.getItem("theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Without storage, the page follows the system.
}
