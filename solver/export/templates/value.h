/* V(x) <= 0, and dV/dx ($n). */
${name}_real ${name}_value(${to}const ${name}_real *x, ${name}_real *gradient);

