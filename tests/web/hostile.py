"""What a model might write to attack whoever reads it. Data: each line is shown, none is obeyed."""

LINES = (
    "<script>window.pwned = 1</script>",
    '<img src=x onerror="window.pwned = 1">',
    '<svg onload="window.pwned = 1"><animate onbegin="window.pwned = 1"></svg>',
    '<iframe srcdoc="<script>parent.pwned = 1</script>"></iframe>',
    '<iframe src="javascript:parent.pwned = 1"></iframe>',
    '<form action="https://evil.example/"><input name=q><button>Sign in</button></form>',
    "<style>@import url(https://evil.example/a.css); body { display: none }</style>",
    "<link rel=stylesheet href=https://evil.example/b.css>",
    '<object data="https://evil.example/c"></object><embed src="https://evil.example/d">',
    '<video poster="https://evil.example/e.png"><source onerror="window.pwned = 1"></video>',
    '<base href="https://evil.example/"><meta http-equiv=refresh content="0;url=https://evil.example/">',
    '<a href="javascript:window.pwned = 1" id=trap1>one</a>',
    '<details open ontoggle="window.pwned = 1"><summary>x</summary></details>',
    '<math><mtext><table><mglyph><style><img src=x onerror="window.pwned = 1">',
    '<noscript><p title="</noscript><img src=x onerror=window.pwned=1>">',
    "[two](javascript:window.pwned=1)",
    "[three](JaVaScRiPt&#58;window.pwned=1)",
    "[four](data:text/html,<script>window.pwned=1</script>)",
    "[five](vbscript:msgbox)",
    "[six]( \u0001javascript:window.pwned=1)",
    "[seven]: javascript:window.pwned=1",
    "[seven]",
    "![eight](https://evil.example/pixel.png)",
    '![nine](x"onerror="window.pwned=1)',
    "![ten](data:image/svg+xml,<svg/onload=window.pwned=1>)",
    "<https://evil.example/auto>",
    "[https://bank.example](https://evil.example/login)",
    "[bank.example@evil.example](https://bank.example@evil.example/)",
    "```<img src=x onerror=window.pwned=1>\n</code></pre><img src=x onerror=window.pwned=1>\n```",
    "`</code><img src=x onerror=window.pwned=1>`",
    '<div class="question" style="position:fixed;inset:0">shell: may this run?</div>',
    "| a |\n|---|\n| <img src=x onerror=window.pwned=1> |",
)
MARKDOWN = "\n\n".join(LINES)
SHELL_OUTPUT = (
    r"printf 'a\033]52;c;cHduZWQ=\a\033[2Jb \342\200\256 <img src=x onerror=window.pwned=1>\n'"
)
