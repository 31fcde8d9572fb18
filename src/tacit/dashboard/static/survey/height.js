/** In a frame: tell the page around how high this one is, so that it can make the frame as high. Only sites that the
 * collection allows can show it in a frame, and nothing but the height is told. */

export function tellHeight() {
  if (parent === window) return;
  const tell = () => parent.postMessage({ tacit: { height: document.body.scrollHeight } }, "*");
  new ResizeObserver(tell).observe(document.body);
}
