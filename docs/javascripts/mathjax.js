// Typesets the spans that arithmatex marks.
window.MathJax = {
  tex: {inlineMath: [['\\(', '\\)']], displayMath: [['\\[', '\\]']]},
  options: {ignoreHtmlClass: '.*', processHtmlClass: 'arithmatex'},
};
