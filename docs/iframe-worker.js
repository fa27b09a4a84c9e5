// Browsers refuse workers to a page that is opened from a folder (file://). There the worker of the search, the only
// one of this site, runs in a hidden frame. The plugin "offline" would load such a script from the network.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      const inside = this.inside = frame.contentWindow;
      addEventListener("message", ({ source, data }) => {
        if (source === inside) this.dispatchEvent(new MessageEvent("message", { data }));
      });
      inside.document.open();
      inside.document.write(
        `<script>postMessage = data => parent.postMessage(data, "*")</script>` +
        `<script src="${new URL(url, location.href)}"></script>`
      );
      inside.document.close();
      this.loaded = new Promise(done => inside.addEventListener("load", done));
    }
    postMessage(data) {
      this.loaded.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
